import { FairOrder, Flow, monotonicClock, type Clock, type Holder } from '@carpool/core'

/** CPU time of a step with a peer that means well, in ms, at most. */
const USUAL_MS = 5
/**
 * How much more than that all steps of a function may cost within {@link REMEMBERED_MS}, in ms: V8 may collect garbage within
 * one, the first ones cost more, and systems count CPU time in pieces of some ms.
 */
const MAX_EXCESS_MS = 30
/** That much must also be of what all its steps cost in that time: a busy one has many that meet with a collection of garbage. */
const MAX_EXCESS_PART = 0.2
/** The same for all functions of an owner, each with no more than its own limit: one alone does not make the others wait. */
const MAX_OWNER_EXCESS_MS = 120
/** How long it counts, in ms. For a function that has passed its limit, all of it does so from its last step of that kind on. */
const REMEMBERED_MS = 10_000
/** How long none of them has a turn after a step, in times of what that cost: they get a tenth of the thread. */
const REST_PER_COST = 9

/** By how much steps of a function have cost more than is usual. */
interface Excess {
  readonly ms: number
  /** All that its steps have cost since the first of those. */
  readonly totalMs: number
  readonly untilMs: number
}

class WaitingSteps extends Flow {
  readonly steps: Array<() => void> = []
}

/** What a test may replace. */
export interface HandshakeTurnsParts {
  /** The turns of those whose steps cost what is usual. */
  readonly turns: { enter(holder: Holder, begin: () => void): void }
  readonly clock: Clock
  /** CPU time of the thread, in ms. */
  readonly cpuMs: () => number
  readonly after: (delayMs: number, callback: () => void) => void
}

/**
 * When steps of handshakes run. The peer decides what one costs: it sends the keys and signatures that OpenSSL checks, and
 * nothing can stop that once it has begun. So the CPU time of each is measured. Functions whose steps cost much wait for further
 * ones, in an order of their own by what those cost, and all of them together get a tenth of the thread.
 */
export class HandshakeTurns {
  readonly #parts: HandshakeTurnsParts
  readonly #order = new FairOrder((holder) => new WaitingSteps(holder))
  /** By owner and function. */
  readonly #excesses = new Map<string, Map<string, Excess>>()
  #restUntilMs = 0
  #isScheduled = false

  constructor(parts: HandshakeTurnsParts) {
    this.#parts = parts
  }

  /** Runs the step now or later. */
  enter(holder: Holder, step: () => void): void {
    // Many may have come before the first of them was found to cost much.
    this.#parts.turns.enter(holder, () => {
      if (!this.#isCostly(holder)) return void this.#run(holder, step)
      this.#order.wait(holder).steps.push(step)
      this.#serve()
    })
  }

  #serve(): void {
    if (this.#isScheduled) return
    for (let flow = this.#order.first(); flow !== undefined; flow = this.#order.first()) {
      const restMs = this.#restUntilMs - this.#parts.clock()
      if (restMs > 0) return this.#serveAfter(restMs)
      const step = flow.steps.shift()!
      if (flow.steps.length === 0) this.#order.rest(flow)
      this.#order.charge(flow, this.#run(flow, step))
    }
    this.#order.reset()
  }

  #serveAfter(restMs: number): void {
    this.#isScheduled = true
    this.#parts.after(restMs, () => {
      this.#isScheduled = false
      this.#serve()
    })
  }

  /** Gives what it has cost. */
  #run(holder: Holder, step: () => void): number {
    const { cpuMs, clock } = this.#parts
    const before = cpuMs()
    step()
    const cost = cpuMs() - before
    const nowMs = clock()
    this.#note(holder, cost, nowMs)
    if (this.#isCostly(holder)) this.#restUntilMs = Math.max(this.#restUntilMs, nowMs) + cost * REST_PER_COST
    return cost
  }

  #isCostly({ owner, functionName }: Holder): boolean {
    const functions = this.#excesses.get(owner)
    if (functions === undefined) return false
    forgetPassed(functions, this.#parts.clock())
    const own = functions.get(functionName)
    if (own !== undefined && isOverLimit(own)) return true
    let ofOwnerMs = 0
    for (const excess of functions.values()) if (isLarge(excess)) ofOwnerMs += Math.min(excess.ms, MAX_EXCESS_MS)
    return ofOwnerMs >= MAX_OWNER_EXCESS_MS
  }

  #note({ owner, functionName }: Holder, cost: number, nowMs: number): void {
    const excessMs = Math.max(0, cost - USUAL_MS)
    const known = this.#excesses.get(owner)?.get(functionName)
    const before = known !== undefined && known.untilMs > nowMs ? known : undefined
    if (excessMs === 0 && before === undefined) return
    if (excessMs > 0) this.#forgetPassed(nowMs)
    const ms = (before?.ms ?? 0) + excessMs
    const totalMs = (before?.totalMs ?? 0) + cost
    const isAnew = before === undefined || (excessMs > 0 && isOverLimit({ ms, totalMs }))
    const untilMs = isAnew ? nowMs + REMEMBERED_MS : before.untilMs
    const functions = this.#excesses.get(owner) ?? new Map<string, Excess>()
    this.#excesses.set(owner, functions.set(functionName, { ms, totalMs, untilMs }))
  }

  #forgetPassed(nowMs: number): void {
    for (const [name, functions] of this.#excesses) {
      forgetPassed(functions, nowMs)
      if (functions.size === 0) this.#excesses.delete(name)
    }
  }
}

type Costs = Pick<Excess, 'ms' | 'totalMs'>

function isOverLimit(costs: Costs): boolean {
  return costs.ms >= MAX_EXCESS_MS && isLarge(costs)
}

function isLarge({ ms, totalMs }: Costs): boolean {
  return ms >= totalMs * MAX_EXCESS_PART
}

/** @param turns those in which connections are begun */
export function createHandshakeTurns(turns: HandshakeTurnsParts['turns']): HandshakeTurns {
  return new HandshakeTurns({
    turns,
    clock: monotonicClock,
    cpuMs: threadCpuMs,
    after: (delayMs, callback) => void setTimeout(callback, delayMs),
  })
}

function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function forgetPassed(functions: Map<string, Excess>, nowMs: number): void {
  for (const [name, { untilMs }] of functions) if (untilMs <= nowMs) functions.delete(name)
}
