/** A call costs at least this much CPU time, in ms: sending it costs something, and no cost would always go first. */
const MIN_COST_MS = 0.02

/** What waits in a queue; also the handle with which it is taken out. */
export interface Queued<T> {
  readonly key: string
  readonly item: T
  /** When it came, in ms of a monotonic clock. */
  readonly atMs: number
  /** The CPU time that it is expected to use, in ms. */
  readonly costMs: number
}

export interface Pushed<T> {
  readonly entry: Queued<T>
  /** What had to leave because the queue was full; it may be `entry`. */
  readonly pushedOut?: Queued<T>
}

/** Which entry of a flow leaves the queue first. */
export type QueueOrder = 'oldest' | 'newest'

interface Node<T> extends Queued<T> {
  readonly flow: Flow<T>
  older: Node<T> | undefined
  newer: Node<T> | undefined
  isQueued: boolean
}

/** The entries of one key: of one function. */
interface Flow<T> {
  readonly key: string
  length: number
  oldest: Node<T> | undefined
  newest: Node<T> | undefined
  /** At which virtual time, in ms of cost, its next entry may begin. */
  startMs: number
  /** Order of flows that begin at the same time. */
  sequence: number
}

/**
 * A bounded queue, fair between flows by the cost of what they are served: start-time fair queueing (Goyal, Vin, Cheng:
 * "Start-time Fair Queuing", SIGCOMM 1996). Each flow has a virtual time, which advances by the cost of each entry that is
 * taken; the flow that is least far is served next. A new flow starts at the queue's virtual time, so that it neither pays for
 * what it used while nobody else waited nor saves up what it did not use: it waits for at most one entry of each other flow.
 * Between flows that always wait the cost served differs by at most the cost of one entry of each.
 */
export class FairQueue<T> {
  readonly #maxQueued: number
  /** Flows with entries, and those without that virtual time has not passed yet. */
  readonly #flows = new Map<string, Flow<T>>()
  /** Flows with entries, in the order in which they are served. */
  readonly #active: Array<Flow<T>> = []
  /** Flows without, in the order in which they can be forgotten. */
  readonly #idle: Array<Flow<T>> = []
  /** Active flows by their length. */
  readonly #byLength: Array<Set<Flow<T>>> = []
  #size = 0
  #longest = 0
  #lastSequence = 0
  #virtualMs = 0

  /** @param maxQueued most entries, 0 or more */
  constructor(maxQueued: number) {
    this.#maxQueued = maxQueued
  }

  get size(): number {
    return this.#size
  }

  sizeOf(key: string): number {
    return this.#flows.get(key)?.length ?? 0
  }

  /** Flows that are kept: those with entries, and those without that virtual time has not passed yet. */
  get rememberedFlows(): number {
    return this.#flows.size
  }

  /** When the entry came that waits longest; undefined if none waits. */
  get oldestAtMs(): number | undefined {
    let oldest: number | undefined
    for (const flow of this.#active) if (oldest === undefined || flow.oldest!.atMs < oldest) oldest = flow.oldest!.atMs
    return oldest
  }

  /**
   * Adds an entry. If the queue is full, the longest waiting entry of the flow with the most entries leaves; of several such
   * flows, that of the one that pushes.
   */
  push(key: string, item: T, { atMs, costMs }: { readonly atMs: number; readonly costMs: number }): Pushed<T> {
    const flow = this.#flowOf(key)
    const node: Node<T> = { key, item, atMs, costMs, flow, older: flow.newest, newer: undefined, isQueued: true }
    if (flow.newest === undefined) flow.oldest = node
    else flow.newest.newer = node
    flow.newest = node
    this.#resize(flow, 1)
    if (this.#size <= this.#maxQueued) return { entry: node }
    const longest = flow.length === this.#longest ? flow : (this.#byLength[this.#longest]!.values().next().value ?? flow)
    const pushedOut = longest.oldest!
    this.#unlink(pushedOut)
    this.#forgetIdle()
    return { entry: node, pushedOut }
  }

  /**
   * Takes the entry that is served next: of the flow that was served least and can run.
   * @param canRun called for one flow after the other until it returns true
   * @param order which entry of the flow
   */
  take(canRun: (key: string) => boolean, order: QueueOrder): Queued<T> | undefined {
    const flow = this.#active.find(({ key }) => canRun(key))
    if (flow === undefined) return undefined
    const node = (order === 'oldest' ? flow.oldest : flow.newest)!
    // A flow that could not run for a while does not catch up on it, or it would hold up all others then.
    this.#virtualMs = Math.max(this.#virtualMs, flow.startMs)
    this.#reorder(flow, this.#virtualMs + (node.costMs > MIN_COST_MS ? node.costMs : MIN_COST_MS))
    this.#unlink(node)
    this.#forgetIdle()
    return node
  }

  /** Takes an entry out, because its client has left. False if it had left the queue already. */
  remove(entry: Queued<T>): boolean {
    const node = entry as Node<T>
    if (!node.isQueued) return false
    this.#unlink(node)
    this.#forgetIdle()
    return true
  }

  /**
   * Takes out the entries whose wait is over, oldest first. Of each flow only as many are looked at as are over, and one
   * more, so `isExpired` must not be true of an entry if it is false of an older one of the same flow.
   * @param max most entries to take
   */
  removeWhere(isExpired: (entry: Queued<T>) => boolean, max = Number.POSITIVE_INFINITY): Array<Queued<T>> {
    const expired: Array<Node<T>> = []
    for (const { oldest } of this.#active) {
      let count = 0
      for (let node = oldest; node !== undefined && count < max && isExpired(node); node = node.newer) {
        expired.push(node)
        count++
      }
    }
    if (expired.length === 0) return expired
    const taken = expired.toSorted((a, b) => a.atMs - b.atMs).slice(0, max)
    for (const node of taken) this.#unlink(node)
    this.#forgetIdle()
    return taken
  }

  #flowOf(key: string): Flow<T> {
    const known = this.#flows.get(key)
    if (known !== undefined && known.length > 0) return known
    const flow = known ?? { key, length: 0, oldest: undefined, newest: undefined, startMs: 0, sequence: 0 }
    if (known !== undefined) removeSorted(this.#idle, known)
    flow.startMs = Math.max(flow.startMs, this.#virtualMs)
    flow.sequence = ++this.#lastSequence
    this.#flows.set(key, flow)
    insertSorted(this.#active, flow)
    return flow
  }

  #reorder(flow: Flow<T>, startMs: number): void {
    removeSorted(this.#active, flow)
    flow.startMs = startMs
    flow.sequence = ++this.#lastSequence
    insertSorted(this.#active, flow)
  }

  #unlink(node: Node<T>): void {
    const { flow, older, newer } = node
    node.isQueued = false
    node.older = node.newer = undefined
    if (older === undefined) flow.oldest = newer
    else older.newer = newer
    if (newer === undefined) flow.newest = older
    else newer.older = older
    this.#resize(flow, -1)
    if (flow.length > 0) return
    removeSorted(this.#active, flow)
    insertSorted(this.#idle, flow)
  }

  /** Lengths change by one, so the longest is known without a search. */
  #resize(flow: Flow<T>, by: 1 | -1): void {
    this.#byLength[flow.length]?.delete(flow)
    flow.length += by
    this.#size += by
    if (flow.length > 0) (this.#byLength[flow.length] ??= new Set()).add(flow)
    if (flow.length > this.#longest) this.#longest = flow.length
    else if (this.#longest > 0 && this.#byLength[this.#longest]!.size === 0) this.#longest--
  }

  /** A flow that virtual time has passed starts as a new one would. An empty queue has no past: nobody waited. */
  #forgetIdle(): void {
    if (this.#size === 0) {
      this.#flows.clear()
      this.#idle.length = 0
      this.#virtualMs = 0
      return
    }
    let passed = 0
    while (passed < this.#idle.length && this.#idle[passed]!.startMs <= this.#virtualMs) passed++
    for (const { key } of this.#idle.splice(0, passed)) this.#flows.delete(key)
  }
}

function positionOf<T>(flows: ReadonlyArray<Flow<T>>, { startMs, sequence }: Flow<T>): number {
  let low = 0
  let high = flows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = flows[middle]!
    if (other.startMs < startMs || (other.startMs === startMs && other.sequence < sequence)) low = middle + 1
    else high = middle
  }
  return low
}

function insertSorted<T>(flows: Array<Flow<T>>, flow: Flow<T>): void {
  flows.splice(positionOf(flows, flow), 0, flow)
}

function removeSorted<T>(flows: Array<Flow<T>>, flow: Flow<T>): void {
  flows.splice(positionOf(flows, flow), 1)
}
