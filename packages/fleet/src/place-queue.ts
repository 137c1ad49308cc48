import {
  FairQueue,
  queueTimeoutMs,
  StandingQueue,
  takeOrder,
  type Queued,
  type QueueState,
  type QueueTimeoutPolicy,
} from '@carpool/admission'
import { CarpoolError, type Cancellation, type Clock, type Revision } from '@carpool/core'

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
}

interface WaitingCall<Place> {
  readonly revision: Revision
  readonly cancellation: Cancellation
  /** With a place, or with nothing when the client has left. */
  readonly resolve: (place: Place | undefined) => void
  readonly reject: (error: CarpoolError) => void
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
export class PlaceQueue<Place> {
  readonly #options: PlaceQueueOptions
  readonly #queue: FairQueue<WaitingCall<Place>>
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

  /**
   * Waits for a place. Resolves with nothing if the client leaves.
   * @throws CarpoolError `saturated` if there is none in time, `no-host` if there is no host that could have one
   */
  wait(revision: Revision, cancellation: Cancellation): Promise<Place | undefined> {
    const { clock, costMs } = this.#options
    const { functionName } = revision
    if (this.stands) this.#refusable = Math.min(this.#refusable + REFUSALS_PER_ARRIVAL, this.#queue.size)
    return new Promise((resolve, reject) => {
      const call = { revision, cancellation, resolve, reject }
      const { entry, pushedOut } = this.#queue.push(functionName, call, { atMs: clock(), costMs: costMs(functionName) })
      this.#sweep ??= setInterval(() => this.#refuseExpired(), SWEEP_MS)
      cancellation.onCancel(() => {
        if (!this.#queue.remove(entry)) return
        this.#standing.lost(clock())
        resolve(undefined)
      })
      if (pushedOut !== undefined) this.#refuse(pushedOut, `the limit of ${this.#queue.size} waiting calls was reached`)
    })
  }

  /**
   * Gives places to those whose turn it is, for as long as there are any.
   * @param hasPlace whether there is a place for a function
   * @param placeFor takes it
   */
  dispatch(hasPlace: (functionName: string) => boolean, placeFor: (revision: Revision) => Place | undefined): void {
    if (this.#queue.size === 0) return
    const order = takeOrder(this.#state, this.#options.timeouts)
    while (this.#queue.size > 0) {
      const entry = this.#queue.take(hasPlace, order)
      if (entry === undefined) return
      const { revision, cancellation, resolve, reject } = entry.item
      cancellation.onCancel(undefined)
      this.#countGap()
      const place = placeFor(revision)
      if (place === undefined) reject(new CarpoolError('saturated', 'The host that had room is gone.'))
      else resolve(place)
    }
    this.#rest()
  }

  /** Refuses what of a function waits. */
  refuseOf(functionName: string, error: CarpoolError): void {
    for (const { item } of this.#queue.takeExpired(({ item }) => item.revision.functionName === functionName)) {
      item.cancellation.onCancel(undefined)
      this.#standing.lost(this.#options.clock())
      item.reject(error)
    }
    this.#rest()
  }

  /** Refuses whatever waits. */
  close(): void {
    for (const entry of this.#queue.takeExpired(() => true)) {
      entry.item.reject(new CarpoolError('draining', 'The server is shutting down.'))
    }
    this.#rest()
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
    const deadlineMs = ({ item }: Queued<WaitingCall<Place>>): number =>
      Math.min(timeouts.maxQueueMs, Math.max(item.revision.limits.wallMs, LEAST_DEADLINE_MS))
    const late = this.#queue.takeExpired((entry) => nowMs - entry.atMs >= deadlineMs(entry), MAX_REFUSALS)
    const timeoutMs = queueTimeoutMs(this.#state, timeouts)
    const most = Math.min(MAX_REFUSALS, this.#refusable)
    const spareMs = Math.max(timeoutMs, timeouts.intervalMs)
    const isShed = ({ atMs, item }: Queued<WaitingCall<Place>>): boolean =>
      nowMs - atMs >= (this.#isDelayedByOthers(item.revision.functionName) ? spareMs : timeoutMs)
    const shed = most === 0 ? [] : this.#queue.takeExpired(isShed, most)
    this.#refusable -= shed.length
    for (const entry of [...late, ...shed]) {
      this.#standing.lost(nowMs)
      this.#refuse(entry, `it has waited for ${Math.round(nowMs - entry.atMs)} ms`)
    }
    this.#rest()
  }

  /** What of a function waits could have been done within the target by itself, so whatever keeps the queue standing is not its flood. */
  #isDelayedByOthers(functionName: string): boolean {
    const { timeouts, costMs } = this.#options
    return this.#queue.sizeOf(functionName) * costMs(functionName) <= timeouts.targetMs
  }

  #refuse({ item }: Queued<WaitingCall<Place>>, why: string): void {
    item.cancellation.onCancel(undefined)
    const isSaturated = this.#options.hasHost()
    item.reject(
      isSaturated
        ? new CarpoolError('saturated', `No host has room for the call, and ${why}.`)
        : new CarpoolError('no-host', `No host process is ready, and ${why}.`),
    )
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
