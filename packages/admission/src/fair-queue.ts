import { FairOrder, Flow as SharedFlow, type Holder } from '@carpool/core'

/** A call costs at least this much CPU time, in ms: sending it costs something, and no cost would always go first. */
const MIN_COST_MS = 0.02

/** What waits in a queue; also the handle with which it is taken out. */
export interface Queued<T> extends Holder {
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
  /** Counts what was pushed. */
  readonly number: number
  older: Node<T> | undefined
  newer: Node<T> | undefined
  isQueued: boolean
}

/** The entries of one function. */
class Flow<T> extends SharedFlow {
  readonly line: OwnerLine<T>
  length = 0
  workMs = 0
  /** How many had been pushed when one of its entries was taken last. */
  takenAt = 0
  oldest: Node<T> | undefined = undefined
  newest: Node<T> | undefined = undefined

  constructor(holder: Holder, line: OwnerLine<T>) {
    super(holder)
    this.line = line
  }
}

/** The entries of one owner. */
class OwnerLine<T> {
  readonly flows = new ByLength<Flow<T>>()
  length = 0
  workMs = 0
}

/**
 * A bounded queue, fair between owners and between the functions of each by the cost of what they are served, in the order of
 * {@link FairOrder}: a flow that comes waits for at most one entry of each other owner, and of each other function of its own.
 * Between flows of one owner that always wait the cost served differs by at most the cost of one entry of each, and between
 * owners likewise.
 */
export class FairQueue<T> {
  readonly #maxQueued: number
  readonly #order = new FairOrder<Flow<T>>((holder) => new Flow(holder, this.#lineOf(holder.owner)))
  /** Owners of flows that the order remembers, or who have entries. */
  readonly #lines = new Map<string, OwnerLine<T>>()
  readonly #owners = new ByLength<OwnerLine<T>>()
  #size = 0
  #workMs = 0
  #pushed = 0

  /** @param maxQueued most entries, 0 or more */
  constructor(maxQueued: number) {
    this.#maxQueued = maxQueued
  }

  get size(): number {
    return this.#size
  }

  /** Functions with entries. */
  get functions(): number {
    return this.#order.waiting
  }

  sizeOf(holder: Holder): number {
    return this.#size === 0 ? 0 : (this.#order.find(holder)?.length ?? 0)
  }

  /** Flows that are kept: those with entries, and those without that virtual time has not passed yet. */
  get rememberedFlows(): number {
    return this.#order.remembered
  }

  /** When the entry came that waits longest; undefined if none waits. */
  get oldestAtMs(): number | undefined {
    let oldest: number | undefined
    for (const flows of this.#order.waitingByOwner()) {
      for (const flow of flows) if (oldest === undefined || flow.oldest!.atMs < oldest) oldest = flow.oldest!.atMs
    }
    return oldest
  }

  /**
   * Adds an entry. If the queue is full, one leaves: of the owner with the most entries, of the function with the most of these,
   * the one that waits longest. Of several such owners or functions it is the one that pushes.
   */
  push(holder: Holder, item: T, { atMs, costMs }: Pick<Queued<T>, 'atMs' | 'costMs'>): Pushed<T> {
    const { owner, functionName } = holder
    const flow = this.#order.wait(holder)
    const node: Node<T> = {
      owner,
      functionName,
      item,
      atMs,
      costMs,
      flow,
      number: ++this.#pushed,
      older: flow.newest,
      newer: undefined,
      isQueued: true,
    }
    if (flow.newest === undefined) flow.oldest = node
    else flow.newest.newer = node
    flow.newest = node
    this.#count(flow, 1, costMs)
    if (this.#size <= this.#maxQueued) return { entry: node }
    const line = this.#owners.longest(flow.line)
    const pushedOut = line.flows.longest(line === flow.line ? flow : undefined).oldest!
    this.#unlink(pushedOut)
    return { entry: node, pushedOut }
  }

  /**
   * Takes the entry that is served next: of the owner that was served least and has a function that can run, of the function of
   * those that was.
   * @param canRun called for one flow after the other until it returns true
   * @param order which entry of the flow
   */
  take(canRun: (functionName: string) => boolean, order: QueueOrder): Queued<T> | undefined {
    return this.#takeFrom(
      this.#order.first(({ functionName }) => canRun(functionName)),
      order,
    )
  }

  /** The same of one flow alone. */
  takeOf(holder: Holder, canRun: (functionName: string) => boolean, order: QueueOrder): Queued<T> | undefined {
    const flow = this.#order.find(holder)
    return flow !== undefined && flow.length > 0 && canRun(flow.functionName) ? this.#takeFrom(flow, order) : undefined
  }

  #takeFrom(flow: Flow<T> | undefined, order: QueueOrder): Queued<T> | undefined {
    if (flow === undefined) return undefined
    const node = (order === 'oldest' ? flow.oldest : flow.newest)!
    flow.takenAt = this.#pushed
    this.#order.charge(flow, node.costMs > MIN_COST_MS ? node.costMs : MIN_COST_MS)
    this.#unlink(node)
    return node
  }

  /** Takes an entry out, because its client has left. False if it had left the queue already. */
  remove(entry: Queued<T>): boolean {
    const node = entry as Node<T>
    if (!node.isQueued) return false
    this.#unlink(node)
    return true
  }

  /**
   * Takes out the entries whose wait is over, oldest first. Of each flow only as many are looked at as are over, and one
   * more, so `isExpired` must not be true of an entry if it is false of an older one of the same flow.
   * @param max most entries to take
   */
  removeWhere(isExpired: (entry: Queued<T>) => boolean, max = Number.POSITIVE_INFINITY): Array<Queued<T>> {
    const expired: Array<Node<T>> = []
    for (const flows of this.#order.waitingByOwner()) {
      for (const { oldest } of flows) {
        let count = 0
        for (let node = oldest; node !== undefined && count < max && isExpired(node); node = node.newer) {
          expired.push(node)
          count++
        }
      }
    }
    if (expired.length === 0) return expired
    const taken = expired.toSorted((a, b) => a.atMs - b.atMs).slice(0, max)
    for (const node of taken) this.#unlink(node)
    return taken
  }

  /**
   * Whether an entry's function has had less than its share since the entry came: nothing of it was taken, although less work
   * waits of it than of others. That is, of its owner less than an equal part of all, or of the function less than an equal part
   * of what its owner has.
   */
  isBelowShare(entry: Queued<T>): boolean {
    const { flow, number } = entry as Node<T>
    if (flow.takenAt >= number) return false
    const { line } = flow
    return line.workMs * this.#owners.size < this.#workMs || flow.workMs * line.flows.size < line.workMs
  }

  #lineOf(owner: string): OwnerLine<T> {
    let line = this.#lines.get(owner)
    if (line === undefined) this.#lines.set(owner, (line = new OwnerLine()))
    return line
  }

  #unlink(node: Node<T>): void {
    const { flow, older, newer } = node
    node.isQueued = false
    node.older = node.newer = undefined
    if (older === undefined) flow.oldest = newer
    else older.newer = newer
    if (newer === undefined) flow.newest = older
    else newer.older = older
    this.#count(flow, -1, node.costMs)
    if (flow.length === 0) this.#order.rest(flow)
    if (this.#size > 0) return
    // An empty queue has no past: nobody waited.
    this.#order.reset()
    this.#lines.clear()
  }

  #count(flow: Flow<T>, by: 1 | -1, costMs: number): void {
    const { line } = flow
    const ms = costMs > MIN_COST_MS ? costMs * by : MIN_COST_MS * by
    line.flows.resize(flow, by)
    this.#owners.resize(line, by)
    this.#size += by
    // Sums of fractions drift.
    flow.workMs = flow.length === 0 ? 0 : flow.workMs + ms
    line.workMs = line.length === 0 ? 0 : line.workMs + ms
    this.#workMs = this.#size === 0 ? 0 : this.#workMs + ms
  }
}

/** Finds the longest of things whose lengths change by one, without a search. Those of length 0 are not in it. */
class ByLength<T extends { length: number }> {
  readonly #byLength: Array<Set<T>> = []
  #longest = 0
  size = 0

  resize(one: T, by: 1 | -1): void {
    const before = one.length
    this.#byLength[before]?.delete(one)
    one.length = before + by
    if (one.length > 0) (this.#byLength[one.length] ??= new Set()).add(one)
    this.size += Number(one.length > 0) - Number(before > 0)
    if (one.length > this.#longest) this.#longest = one.length
    else if (this.#longest > 0 && this.#byLength[this.#longest]!.size === 0) this.#longest--
  }

  /**
   * There must be one.
   * @param preferred one of them; given if it is as long as the longest
   */
  longest(preferred: T | undefined): T {
    return preferred?.length === this.#longest ? preferred : this.#byLength[this.#longest]!.values().next().value!
  }
}
