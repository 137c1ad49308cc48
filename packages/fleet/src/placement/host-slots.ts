import type { Revision, Slot } from '@carpool/core'
import { whole, type Signals } from '@carpool/wire'
import { initialHostLimit, nextHostLimit, type HostLimit, type HostLimitPolicy } from '../scaling/host-limit.ts'
import { flowCapacity, flowLimit, hasRoom } from './placement-policy.ts'

/** Weight of the newest call. */
const SMOOTHING = 0.2
/** What a call costs in the host around its isolate, in ms, as measured. */
const AROUND_MS = 0.01
/** What a call is taken to cost of which nothing is known, in ms. */
const UNKNOWN_COST_MS = 1

/** The calls of one function, as a host's room is asked for them. */
export interface Flow {
  readonly functionName: string
  /** Usual CPU time of a call, in ms; undefined if it is not known. */
  costMs: number | undefined
  wallMs: number
}

/** What calls of each function cost lately: fairness between functions, and the estimate of a host's backlog, go by it. */
export class Flows {
  readonly #flows = new Map<string, Flow>()

  /** The flow of a revision's function, which from now on has the revision's wall limit. */
  of({ functionName, limits: { wallMs } }: Pick<Revision, 'functionName' | 'limits'>): Flow {
    let flow = this.#flows.get(functionName)
    if (flow === undefined) {
      flow = { functionName, costMs: undefined, wallMs }
      this.#flows.set(functionName, flow)
    } else flow.wallMs = wallMs
    return flow
  }

  /** Undefined if no call of it has come since it was forgotten. */
  find(functionName: string): Flow | undefined {
    return this.#flows.get(functionName)
  }

  /** What a call of a function is expected to cost, in ms. */
  costMs(functionName: string): number {
    return this.#flows.get(functionName)?.costMs ?? UNKNOWN_COST_MS
  }

  /** A call has used so much CPU time. */
  used(functionName: string, usedMs: number): void {
    const flow = this.#flows.get(functionName)
    if (flow === undefined) return
    const cpuMs = usedMs + AROUND_MS
    flow.costMs = flow.costMs === undefined ? cpuMs : flow.costMs + (cpuMs - flow.costMs) * SMOOTHING
  }

  forget(functionName: string): void {
    this.#flows.delete(functionName)
  }
}

/** A call that costs hardly more than to send it. */
const SHORTEST: Flow = { functionName: '', costMs: 0.01, wallMs: 1 }

/**
 * The slots of one host: its limit, and what runs there, in all and of each function. A call gives its slot back when it is
 * answered, or when it waits for a timer or a fetch: what waits takes none of the host's CPU.
 */
export class HostSlots {
  readonly #onRelease: () => void
  readonly #runningOf = new Map<string, number>()
  readonly #inFlightOf = new Map<string, number>()
  readonly #policy: HostLimitPolicy
  #held = 0
  /** Usual CPU time of what runs, in ms; of calls whose cost was not known, none is counted. */
  #workMs = 0
  #unknown = 0
  /** Calls that have given their slots back and want to go on, as the host last reported. */
  resumed = 0
  #limit: HostLimit

  /** @param onRelease called when a slot was given back */
  constructor(policy: HostLimitPolicy, onRelease: () => void) {
    this.#policy = policy
    this.#limit = initialHostLimit(policy)
    this.#onRelease = onRelease
  }

  /** How many calls may run there. */
  get limit(): number {
    return this.#limit.limit
  }

  get running(): number {
    return this.#held + this.resumed
  }

  /** Whether only a function's own share is left, or less. */
  get isFull(): boolean {
    return !this.#hasRoom(SHORTEST, Number.POSITIVE_INFINITY)
  }

  /** Functions of which something runs. */
  get runningFunctions(): Iterable<string> {
    return this.#runningOf.keys()
  }

  runningOf(functionName: string): number {
    return this.#runningOf.get(functionName) ?? 0
  }

  /** The host has reported its run delays of the last 100 ms. It runs user code, so any value may be in there. */
  onReport({ resumed, runDelay: { count, p90Us } }: Signals, atMs: number): void {
    this.resumed = whole(resumed)
    const sample = { count: whole(count), p90Us: whole(p90Us), running: this.running, atMs }
    this.#limit = nextHostLimit(this.#limit, sample, this.#policy)
  }

  hasRoom(flow: Flow): boolean {
    const { functionName, costMs, wallMs } = flow
    const ofFunction = this.runningOf(functionName)
    if (ofFunction >= flowLimit(costMs, this.#policy.targetMs)) return false
    if ((this.#inFlightOf.get(functionName) ?? 0) >= flowCapacity(costMs, wallMs)) return false
    return this.#hasRoom(flow, ofFunction)
  }

  take({ functionName, costMs }: Flow): Slot {
    this.#held++
    if (costMs === undefined) this.#unknown++
    else this.#workMs += costMs
    add(this.#runningOf, functionName, 1)
    add(this.#inFlightOf, functionName, 1)
    return new HeldSlot(this, functionName, costMs)
  }

  /** For slots alone: the call does not run any more. */
  released(functionName: string, costMs: number | undefined): void {
    this.#held--
    if (costMs === undefined) this.#unknown--
    // Sums of fractions drift.
    else this.#workMs = this.#held === this.#unknown ? 0 : this.#workMs - costMs
    add(this.#runningOf, functionName, -1)
  }

  /** For slots alone: the call has ended. */
  ended(functionName: string): void {
    add(this.#inFlightOf, functionName, -1)
  }

  /** For slots alone: there is more room than before. */
  hasMoreRoom(): void {
    this.#onRelease()
  }

  #hasRoom({ functionName, costMs }: Flow, ofFunction: number): boolean {
    const isKnown = costMs !== undefined && this.#unknown === 0 && this.resumed === 0
    return hasRoom({
      running: this.running,
      limit: this.limit,
      ofFunction,
      functions: this.#runningOf.size + (this.#runningOf.has(functionName) ? 0 : 1),
      workMs: isKnown ? this.#workMs + costMs : Number.POSITIVE_INFINITY,
      targetMs: this.#policy.targetMs,
    })
  }
}

class HeldSlot implements Slot {
  readonly #slots: HostSlots
  readonly #functionName: string
  readonly #costMs: number | undefined
  #isReleased = false
  #isEnded = false

  constructor(slots: HostSlots, functionName: string, costMs: number | undefined) {
    this.#slots = slots
    this.#functionName = functionName
    this.#costMs = costMs
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#slots.released(this.#functionName, this.#costMs)
    this.#slots.hasMoreRoom()
  }

  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#slots.ended(this.#functionName)
    if (this.#isReleased) this.#slots.hasMoreRoom()
    else this.release()
  }
}

function add(counts: Map<string, number>, functionName: string, change: 1 | -1): void {
  const count = (counts.get(functionName) ?? 0) + change
  if (count === 0) counts.delete(functionName)
  else counts.set(functionName, count)
}
