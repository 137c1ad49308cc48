import {
  FairQueue,
  queueTimeoutMs,
  StandingQueue,
  takeOrder,
  type Queued,
  type QueueState,
  type QueueTimeoutPolicy,
} from '@carpool/admission'
import { CarpoolError, type Call, type CallHolder, type Clock } from '@carpool/core'

export interface PlaceQueueOptions {
  /** Most calls that may wait. */
  readonly maxQueued: number
  readonly timeouts: QueueTimeoutPolicy
  readonly clock: Clock
  /** Whether there is evidence that the CPU is full. */
  readonly isOverloaded: () => boolean
  /** Whether any host takes calls, or will when its work is done. */
  readonly hasHost: () => boolean
  /** Usual CPU time of a call of a function, in ms. */
  readonly costMs: (functionName: string) => number
  /** A call's client has left; it is not in the queue any more. */
  readonly onCanceled: (call: Call) => void
  /** A call waits no longer: `saturated`, `no-host` if there is no host that could have a place, `draining`, or what {@link PlaceQueue.refuseOf} says. */
  readonly onRefused: (call: Call, error: CarpoolError) => void
}

/** A call waits so long for a place however short its wall limit is, in ms: a host that takes the place of one that died needs as much. */
const LEAST_DEADLINE_MS = 3_000
/** How often calls are looked for that have waited too long, in ms: as often as the shortest wait that is worth a setting. */
const SWEEP_MS = 5
/** Most calls that are refused at a time: thousands would hold up the event loop, and most callers come again at once. */
const MAX_REFUSALS = 50
/**
 * Refusals for each call that comes while the queue stands. A queue to which nobody comes any more was a burst, and works itself off: to
 * refuse would help nobody. More than one, so that waits come down to the target.
 */
const REFUSALS_PER_ARRIVAL = 4
/** Weight of the newest gap between two calls that leave for a host. */
const GAP_SMOOTHING = 0.2

/** Calls that no host has room for. Each leaves with a place, because its client left, or refused because it has waited as long as it may. */
export class PlaceQueue implements CallHolder {
  readonly #options: PlaceQueueOptions
  readonly #queue: FairQueue<Call>
  readonly #entries = new Map<Call, Queued<Call>>()
  readonly #standing: StandingQueue
  #sweep: NodeJS.Timeout | undefined
  /** How many calls may be refused for those that came since. */
  #refusable = 0
  #gapMs = 0
  #leftAtMs: number | undefined

  constructor(options: PlaceQueueOptions) {
    this.#options = options
    this.#queue = new FairQueue(options.maxQueued)
    this.#standing = new StandingQueue(options.timeouts)
  }

  get size(): number {
    return this.#queue.size
  }

  /** Whether calls wait too long, and have for so long that it is no burst. */
  get stands(): boolean {
    const { clock, timeouts } = this.#options
    return this.#queue.size > 0 && this.#standing.lateMs(clock()) >= timeouts.intervalMs
  }

  sizeOf(functionName: string): number {
    return this.#queue.sizeOf(functionName)
  }

  push(call: Call): void {
    const { clock, costMs } = this.#options
    const { functionName } = call
    if (this.stands) this.#refusable = Math.min(this.#refusable + REFUSALS_PER_ARRIVAL, this.#queue.size)
    const { entry, pushedOut } = this.#queue.push(functionName, call, { atMs: clock(), costMs: costMs(functionName) })
    this.#entries.set(call, entry)
    call.holder = this
    this.#sweep ??= setInterval(() => this.#refuseExpired(), SWEEP_MS)
    if (pushedOut !== undefined) this.#refuse(pushedOut.item, `the limit of ${this.#queue.size} waiting calls was reached`)
  }

  /** The client of a call that waits has left. */
  cancel(call: Call): void {
    const entry = this.#entries.get(call)
    if (entry === undefined || !this.#queue.remove(entry)) return
    this.#left(call)
    this.#standing.lost(this.#options.clock())
    this.#options.onCanceled(call)
  }

  /**
   * Gives places to those whose turn it is, for as long as there are any.
   * @param hasPlace whether there is a place for a function
   * @param place sends the call there; false if there is none after all
   */
  dispatch(hasPlace: (functionName: string) => boolean, place: (call: Call) => boolean): void {
    if (this.#queue.size === 0) return
    const order = takeOrder(this.#state, this.#options.timeouts)
    while (this.#queue.size > 0) {
      const call = this.#queue.take(hasPlace, order)?.item
      if (call === undefined) return
      this.#left(call)
      this.#countGap()
      if (!place(call)) this.#options.onRefused(call, new CarpoolError('saturated', 'The host that had room is gone.'))
    }
    this.#rest()
  }

  /** Refuses what of a function waits. */
  refuseOf(functionName: string, error: CarpoolError): void {
    for (const { item: call } of this.#queue.takeExpired(({ key }) => key === functionName)) {
      this.#left(call)
      this.#standing.lost(this.#options.clock())
      this.#options.onRefused(call, error)
    }
    this.#rest()
  }

  /** Refuses whatever waits. */
  close(): void {
    for (const { item: call } of this.#queue.takeExpired(() => true)) {
      this.#left(call)
      this.#options.onRefused(call, new CarpoolError('draining', 'The server is shutting down.'))
    }
    this.#rest()
  }

  #left(call: Call): void {
    this.#entries.delete(call)
    call.holder = undefined
  }

  get #state(): QueueState {
    const stoodMs = this.#standing.lateMs(this.#options.clock())
    return { isOverloaded: this.#options.isOverloaded(), stoodMs, gapMs: this.#gapMs }
  }

  #countGap(): void {
    const nowMs = this.#options.clock()
    if (this.#leftAtMs !== undefined) this.#gapMs += (nowMs - this.#leftAtMs - this.#gapMs) * GAP_SMOOTHING
    this.#leftAtMs = nowMs
  }

  #refuseExpired(): void {
    const nowMs = this.#options.clock()
    this.#standing.look(nowMs, this.#queue.oldestAtMs)
    const { timeouts } = this.#options
    const deadlineMs = ({ item: { revision } }: Queued<Call>): number =>
      Math.min(timeouts.maxQueueMs, Math.max(revision?.limits.wallMs ?? 0, LEAST_DEADLINE_MS))
    const late = this.#queue.takeExpired((entry) => nowMs - entry.atMs >= deadlineMs(entry), MAX_REFUSALS)
    const timeoutMs = queueTimeoutMs(this.#state, timeouts)
    const most = Math.min(MAX_REFUSALS, this.#refusable)
    const spareMs = Math.max(timeoutMs, timeouts.intervalMs)
    const isShed = ({ atMs, key }: Queued<Call>): boolean => nowMs - atMs >= (this.#isDelayedByOthers(key) ? spareMs : timeoutMs)
    const shed = most === 0 ? [] : this.#queue.takeExpired(isShed, most)
    this.#refusable -= shed.length
    for (const entry of [...late, ...shed]) {
      this.#standing.lost(nowMs)
      this.#refuse(entry.item, `it has waited for ${Math.round(nowMs - entry.atMs)} ms`)
    }
    this.#rest()
  }

  /** What of a function waits could have been done within the target by itself, so whatever keeps the queue standing is not its flood. */
  #isDelayedByOthers(functionName: string): boolean {
    const { timeouts, costMs } = this.#options
    return this.#queue.sizeOf(functionName) * costMs(functionName) <= timeouts.targetMs
  }

  #refuse(call: Call, why: string): void {
    this.#left(call)
    const { hasHost, onRefused } = this.#options
    const error = hasHost()
      ? new CarpoolError('saturated', `No host has room for the call, and ${why}.`)
      : new CarpoolError('no-host', `No host process is ready, and ${why}.`)
    onRefused(call, error)
  }

  #rest(): void {
    if (this.#queue.size > 0) return
    clearInterval(this.#sweep)
    this.#sweep = undefined
    this.#leftAtMs = undefined
    this.#refusable = 0
    this.#standing.look(this.#options.clock(), undefined)
  }
}
