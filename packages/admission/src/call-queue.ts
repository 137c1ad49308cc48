import { CarpoolError, monotonicClock, type Call, type CallHolder, type Clock, type Holder } from '@carpool/core'
import { FairQueue, type Queued, type QueueOrder } from './fair-queue.ts'

/** How long calls may wait. The settings `queueTargetMs`, `queueIntervalMs` and `maxQueueMs`. */
export interface QueuePolicy {
  /** Wait that is still good when the queue stands, in ms. */
  readonly targetMs: number
  /** How long waits may be longer than the target before the queue stands, in ms. */
  readonly intervalMs: number
  /** Longest wait without overload, in ms. */
  readonly maxQueueMs: number
}

export interface CallQueueOptions {
  /** Most calls that may wait. */
  readonly maxQueued: number
  readonly policy: QueuePolicy
  /** Whether there is evidence that the CPU is full. */
  readonly isOverloaded: () => boolean
  /** Whether any host takes calls. */
  readonly hasHost: () => boolean
  /** Usual CPU time of a call of a function, in ms. */
  readonly costMs: (functionName: string) => number
  /** A call's client has left. Called after the call was taken out of the queue. */
  readonly onCanceled: (call: Call) => void
  /**
   * A call waits no longer. Called after it was taken out, with `saturated`, `no-host` if no host takes calls, `draining`, or
   * what {@link CallQueue.refuseOf} was given.
   */
  readonly onRefused: (call: Call, error: CarpoolError) => void
  readonly clock?: Clock
  /** Calls `sweep` every so many ms until what it returned is called. */
  readonly every?: (periodMs: number, sweep: () => void) => () => void
}

/** A call waits for a host at least this long, however short its wall limit, in ms: replacing a host takes as long. */
const LEAST_DEADLINE_MS = 3_000
/** How often calls are looked for that have waited too long, in ms: as often as the shortest wait that is worth a setting. */
const SWEEP_MS = 5
/** Most calls that are refused by one sweep: thousands would hold up the event loop, and most callers come again at once. */
const MAX_REFUSALS = 50
/**
 * Refusals for each call that comes while the queue stands. A queue to which nobody comes any more was a burst, and works
 * itself off: to refuse would help nobody. More than one, so that waits come down to the target.
 */
const REFUSALS_PER_ARRIVAL = 4
/** So many functions that wait are all asked each time whether there is room for them. */
const FEW_FUNCTIONS = 32

/**
 * The one queue in the server: calls that no host has room for, in the order of {@link FairQueue}. A call leaves it once: to
 * a host, because its client left, or refused because it has waited as long as it may. Deadlines come first, then {@link
 * queueTimeoutMs}. Its sweep runs only while something waits.
 */
export class CallQueue implements CallHolder {
  readonly #options: CallQueueOptions
  readonly #clock: Clock
  readonly #queue: FairQueue<Call>
  readonly #entries = new Map<Call, Queued<Call>>()
  readonly #standing: StandingQueue
  #stopSweeping: (() => void) | undefined
  /** How many calls may be refused for those that came since. */
  #refusable = 0

  constructor(options: CallQueueOptions) {
    this.#options = options
    this.#clock = options.clock ?? monotonicClock
    this.#queue = new FairQueue(options.maxQueued)
    this.#standing = new StandingQueue(options.policy)
  }

  get size(): number {
    return this.#queue.size
  }

  /** Whether waits are too long, and have been for so long that it is no burst. */
  get stands(): boolean {
    return this.#queue.size > 0 && this.#standing.lateMs(this.#clock()) >= this.#options.policy.intervalMs
  }

  sizeOf(holder: Holder): number {
    return this.#queue.sizeOf(holder)
  }

  push(call: Call): void {
    const { costMs, every = repeat } = this.#options
    const { functionName, revision } = call
    if (this.stands) this.#refusable = Math.min(this.#refusable + REFUSALS_PER_ARRIVAL, this.#queue.size)
    const holder = revision ?? { owner: '', functionName }
    const { entry, pushedOut } = this.#queue.push(holder, call, { atMs: this.#clock(), costMs: costMs(functionName) })
    this.#entries.set(call, entry)
    call.holder = this
    this.#stopSweeping ??= every(SWEEP_MS, () => this.#sweep())
    if (pushedOut !== undefined) this.#refuse(pushedOut.item, `the limit of ${this.#queue.size} waiting calls was reached`)
  }

  /** The client of a call that waits has left. */
  cancel(call: Call): void {
    const entry = this.#entries.get(call)
    if (entry === undefined || !this.#queue.remove(entry)) return
    this.#left(call)
    this.#standing.lost(this.#clock())
    this.#options.onCanceled(call)
  }

  /**
   * Sends calls to hosts in the queue's order, for as long as one has room.
   * @param hasRoom whether a host has room for a call of the function
   * @param send sends the call to a host; false if none has room after all
   * @param freedBy the function that has given a slot back, if that is why there may be room
   * @param isFull whether the hosts of a function are full but for what is left of each function's own share
   */
  dispatch(
    hasRoom: (functionName: string) => boolean,
    send: (call: Call) => boolean,
    freedBy?: Holder,
    isFull: (holder: Holder) => boolean = () => false,
  ): void {
    if (this.#queue.size === 0) return
    const order = this.#order
    while (this.#queue.size > 0) {
      // There is room then for that function alone. Thousands need not be asked for each call that ends.
      const isForOne = freedBy !== undefined && this.#queue.functions > FEW_FUNCTIONS && isFull(freedBy)
      const call = (isForOne ? this.#queue.takeOf(freedBy, hasRoom, order) : this.#queue.take(hasRoom, order))?.item
      if (call === undefined) return
      this.#left(call)
      if (!send(call)) this.#options.onRefused(call, new CarpoolError('saturated', 'The host that had room is gone.'))
    }
    this.#restIfEmpty()
  }

  /** Refuses what waits of a function. */
  refuseOf(functionName: string, error: CarpoolError): void {
    this.#refuseAll((entry) => entry.functionName === functionName, error)
  }

  /** Refuses whatever waits. */
  close(): void {
    this.#refuseAll(() => true, new CarpoolError('draining', 'The server is shutting down.'))
  }

  #refuseAll(isRefused: (entry: Queued<Call>) => boolean, error: CarpoolError): void {
    for (const { item: call } of this.#queue.removeWhere(isRefused)) {
      this.#left(call)
      this.#options.onRefused(call, error)
    }
    this.#restIfEmpty()
  }

  #left(call: Call): void {
    this.#entries.delete(call)
    call.holder = undefined
  }

  get #state(): QueueState {
    return { isOverloaded: this.#options.isOverloaded(), lateMs: this.#standing.lateMs(this.#clock()) }
  }

  get #order(): QueueOrder {
    return takeOrder(this.#state, this.#options.policy)
  }

  #sweep(): void {
    const nowMs = this.#clock()
    this.#standing.look(nowMs, this.#queue.oldestAtMs)
    const { policy } = this.#options
    const deadlineMs = ({ item: { revision } }: Queued<Call>): number =>
      Math.min(policy.maxQueueMs, Math.max(revision?.limits.wallMs ?? 0, LEAST_DEADLINE_MS))
    const late = this.#queue.removeWhere((entry) => nowMs - entry.atMs >= deadlineMs(entry), MAX_REFUSALS)
    const timeoutMs = queueTimeoutMs(this.#state, policy)
    const most = Math.min(MAX_REFUSALS, this.#refusable)
    const spareMs = Math.max(timeoutMs, policy.intervalMs)
    const isShed = (entry: Queued<Call>): boolean => nowMs - entry.atMs >= (this.#isDelayedByOthers(entry) ? spareMs : timeoutMs)
    const shed = most === 0 ? [] : this.#queue.removeWhere(isShed, most)
    this.#refusable -= shed.length
    for (const entry of [...late, ...shed]) {
      this.#standing.lost(nowMs)
      this.#refuse(entry.item, `it has waited for ${Math.round(nowMs - entry.atMs)} ms`)
    }
    this.#restIfEmpty()
  }

  /**
   * What waits of a function could be done within the target by itself, and it has had less than its share since the call came:
   * so it is not what keeps the queue standing. A function that is alone is never below its share, however little it has waiting.
   */
  #isDelayedByOthers(entry: Queued<Call>): boolean {
    const { policy, costMs } = this.#options
    const waitingMs = this.#queue.sizeOf(entry) * costMs(entry.functionName)
    return waitingMs <= policy.targetMs && this.#queue.isBelowShare(entry)
  }

  #refuse(call: Call, why: string): void {
    this.#left(call)
    const { hasHost, onRefused } = this.#options
    const error = hasHost()
      ? new CarpoolError('saturated', `No host has room for the call, and ${why}.`)
      : new CarpoolError('no-host', `No host process is ready, and ${why}.`)
    onRefused(call, error)
  }

  #restIfEmpty(): void {
    if (this.#queue.size > 0) return
    this.#stopSweeping?.()
    this.#stopSweeping = undefined
    this.#refusable = 0
    this.#standing.look(this.#clock(), undefined)
  }
}

function repeat(periodMs: number, sweep: () => void): () => void {
  const timer = setInterval(sweep, periodMs)
  return () => clearInterval(timer)
}

/**
 * Tells a queue that stands from one that absorbs a burst. A queue stands once its calls have waited longer than the target
 * for a whole interval, as in CoDel (RFC 8289, section 4): that it is never empty says little, for callers who wait for one
 * answer before they ask again fill it just as well. A client that leaves has waited too long, whatever the target. Once the
 * queue stands, calls that wait longer than the target are refused, which keeps waits near it; so it has come to an end only
 * when none was refused and none left for an interval, or it is empty for as long.
 */
export class StandingQueue {
  readonly #policy: Pick<QueuePolicy, 'targetMs' | 'intervalMs'>
  /** Since when waits are too long. */
  #lateSinceMs: number | undefined
  /** When one was last seen to be. */
  #lateAtMs = Number.NEGATIVE_INFINITY
  #wasLost = false

  constructor(policy: Pick<QueuePolicy, 'targetMs' | 'intervalMs'>) {
    this.#policy = policy
  }

  /**
   * Called by every sweep, and when the queue has become empty.
   * @param oldestAtMs when the longest waiting call came; undefined: none waits
   */
  look(nowMs: number, oldestAtMs: number | undefined): void {
    const { targetMs, intervalMs } = this.#policy
    if (oldestAtMs !== undefined && nowMs - oldestAtMs > targetMs) this.#late(nowMs)
    if (this.#lateSinceMs === undefined) return
    // Losses come one by one, so between them there is a time in which nothing seems late.
    const patienceMs = this.#wasLost || this.lateMs(nowMs) >= intervalMs ? intervalMs : 0
    if (nowMs - this.#lateAtMs <= patienceMs) return
    this.#lateSinceMs = undefined
    this.#wasLost = false
  }

  /** A call was refused because it had waited too long, or its client left. */
  lost(nowMs: number): void {
    this.#wasLost = true
    this.#late(nowMs)
  }

  /** For how long waits have been too long, in ms; 0 if they are not. The queue stands from one interval on. */
  lateMs(nowMs: number): number {
    return this.#lateSinceMs === undefined ? 0 : nowMs - this.#lateSinceMs
  }

  #late(nowMs: number): void {
    this.#lateSinceMs ??= nowMs
    this.#lateAtMs = nowMs
  }
}

/** What a decision on the queue is made on. */
export interface QueueState {
  /** Whether there is evidence of a full CPU: the p90 run delay of all hosts was above its target within the last second. */
  readonly isOverloaded: boolean
  /** For how long waits have been too long, in ms; 0 if they are not. */
  readonly lateMs: number
}

/**
 * How long a call may wait in the queue, in ms.
 *
 * Without a full CPU `maxQueueMs`: what is waited for then is no core but, say, a function that loads, and refusing calls
 * would free nothing. Under overload `intervalMs`, and `targetMs` once the queue stands, as in "Fail at Scale" (Maurer, ACM
 * Queue 2015): a burst passes, a queue that does not empty is cut short, and who is refused learns it soon.
 *
 * Calls that take longer than the target need no longer timeout: hosts hold a few of them anyway, and refusals are bound to
 * arrivals. In simulation of up to ten times the load that fits, no more of them were answered with a timeout of at least the
 * time between two calls that leave.
 */
export function queueTimeoutMs({ isOverloaded, lateMs }: QueueState, { targetMs, intervalMs, maxQueueMs }: QueuePolicy): number {
  if (!isOverloaded) return maxQueueMs
  return Math.min(lateMs < intervalMs ? intervalMs : targetMs, maxQueueMs)
}

/** Newest first while the queue stands under overload: the newest can still be served in time. Else oldest first. */
export function takeOrder({ isOverloaded, lateMs }: QueueState, { intervalMs }: Pick<QueuePolicy, 'intervalMs'>): QueueOrder {
  return isOverloaded && lateMs >= intervalMs ? 'newest' : 'oldest'
}
