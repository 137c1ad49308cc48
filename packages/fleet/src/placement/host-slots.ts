import type { Holder, Revision, Slot } from '@carpool/core'
import { whole, type LoadReport } from '@carpool/wire'
import { initialHostLimit, nextHostLimit, type HostLimit, type HostLimitPolicy } from '../scaling/host-limit.ts'
import { flowCapacity, flowLimit, hasRoom } from './placement-policy.ts'

/** Weight of the newest call. */
const SMOOTHING = 0.2
/** What a call costs in the host around its isolate, in ms, as measured. */
const AROUND_MS = 0.01
/** What a call is taken to cost of which nothing is known, in ms. */
const UNKNOWN_COST_MS = 1

/** The calls of one function, as a host's room is asked for them. */
export interface Flow extends Holder {
  /** Usual CPU time of a call, in ms; undefined if it is not known. */
  costMs: number | undefined
  wallMs: number
}

/** What calls of each function cost lately: fairness between functions, and the estimate of a host's backlog, go by it. */
export class Flows {
  readonly #flows = new Map<string, Flow>()

  /** The flow of a revision's function, which from now on has the revision's wall limit. */
  of({ functionName, owner, limits: { wallMs } }: Pick<Revision, 'functionName' | 'owner' | 'limits'>): Flow {
    let flow = this.#flows.get(functionName)
    if (flow === undefined || flow.owner !== owner) {
      flow = { owner, functionName, costMs: undefined, wallMs }
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
const SHORTEST: Flow = { owner: '', functionName: '', costMs: 0.01, wallMs: 1 }

/** What of one owner runs in a host. */
class OwnerInHost {
  /** Functions of which something runs. */
  running = 0
  /** Functions that are known. */
  known = 0
}

/** What of one function is in a host. */
class FunctionInHost {
  readonly holder: Holder
  readonly owner: OwnerInHost
  running = 0
  inFlight = 0
  /** It was deleted; what it has in the host goes on to its end. */
  isGone = false

  constructor(holder: Holder, owner: OwnerInHost) {
    this.holder = holder
    this.owner = owner
  }
}

/**
 * The slots of one host: its limit, and what runs there, in all and of each function. A call gives its slot back when it is
 * answered, or when it waits for a timer or a fetch: what waits takes none of the host's CPU.
 */
export class HostSlots {
  readonly #onRelease: (freedBy: Holder) => void
  readonly #functions = new Map<string, FunctionInHost>()
  readonly #owners = new Map<string, OwnerInHost>()
  /** Owners of functions of which something runs. */
  #runningOwners = 0
  readonly #policy: HostLimitPolicy
  #held = 0
  /** Usual CPU time of what runs, in ms; of calls whose cost was not known, none is counted. */
  #workMs = 0
  #unknown = 0
  /** Calls that have given their slots back and want to go on, as the host last reported. */
  resumed = 0
  #limit: HostLimit

  /** @param onRelease called when a slot was given back, with the function that had it */
  constructor(policy: HostLimitPolicy, onRelease: (freedBy: Holder) => void) {
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
    return this.#functions.entries().flatMap(([name, { running }]) => (running > 0 ? [name] : []))
  }

  runningOf(functionName: string): number {
    return this.#functions.get(functionName)?.running ?? 0
  }

  /** The function was deleted. What is in the host of it counts until it ends. */
  forget(functionName: string): void {
    const known = this.#functions.get(functionName)
    if (known === undefined) return
    known.isGone = true
    if (known.inFlight === 0) this.#drop(known)
  }

  /** The host has reported its run delays of the last 100 ms. It runs user code, so any value may be in there. */
  onReport({ resumed, runDelay: { count, p90Us } }: LoadReport, atMs: number): void {
    this.resumed = whole(resumed)
    const sample = { count: whole(count), p90Us: whole(p90Us), running: this.running, atMs }
    this.#limit = nextHostLimit(this.#limit, sample, this.#policy)
  }

  hasRoom(flow: Flow): boolean {
    const { costMs, wallMs } = flow
    const known = this.#functions.get(flow.functionName)
    const ofFunction = known?.running ?? 0
    if (ofFunction >= flowLimit(costMs, this.#policy.targetMs)) return false
    if ((known?.inFlight ?? 0) >= flowCapacity(costMs, wallMs)) return false
    return this.#hasRoom(flow, ofFunction)
  }

  take(flow: Flow): Slot {
    const { costMs } = flow
    const ofFunction = this.#functionOf(flow)
    this.#held++
    if (costMs === undefined) this.#unknown++
    else this.#workMs += costMs
    ofFunction.inFlight++
    if (++ofFunction.running === 1 && ++ofFunction.owner.running === 1) this.#runningOwners++
    return new HeldSlot(this, ofFunction, costMs)
  }

  /** For slots alone: the call does not run any more. */
  released(ofFunction: FunctionInHost, costMs: number | undefined): void {
    this.#held--
    if (costMs === undefined) this.#unknown--
    // Sums of fractions drift.
    else this.#workMs = this.#held === this.#unknown ? 0 : this.#workMs - costMs
    if (--ofFunction.running === 0 && --ofFunction.owner.running === 0) this.#runningOwners--
  }

  /** For slots alone: the call has ended. */
  ended(ofFunction: FunctionInHost): void {
    if (--ofFunction.inFlight === 0 && ofFunction.isGone) this.#drop(ofFunction)
  }

  /** For slots alone: there is more room than before. */
  hasMoreRoom({ holder }: FunctionInHost): void {
    this.#onRelease(holder)
  }

  #functionOf(holder: Holder): FunctionInHost {
    const known = this.#functions.get(holder.functionName)
    if (known !== undefined && !known.isGone) return known
    if (known !== undefined) this.#drop(known)
    let owner = this.#owners.get(holder.owner)
    if (owner === undefined) this.#owners.set(holder.owner, (owner = new OwnerInHost()))
    owner.known++
    const made = new FunctionInHost(holder, owner)
    this.#functions.set(holder.functionName, made)
    return made
  }

  #drop(known: FunctionInHost): void {
    const { functionName, owner } = known.holder
    if (this.#functions.get(functionName) !== known) return
    this.#functions.delete(functionName)
    if (--known.owner.known === 0) this.#owners.delete(owner)
  }

  #hasRoom({ owner: ownerName, costMs }: Flow, ofFunction: number): boolean {
    const isKnown = costMs !== undefined && this.#unknown === 0 && this.resumed === 0
    const owner = this.#owners.get(ownerName)
    return hasRoom({
      running: this.running,
      limit: this.limit,
      ofFunction,
      owners: this.#runningOwners + (owner === undefined || owner.running === 0 ? 1 : 0),
      functions: (owner?.running ?? 0) + (ofFunction === 0 ? 1 : 0),
      workMs: isKnown ? this.#workMs + costMs : Number.POSITIVE_INFINITY,
      targetMs: this.#policy.targetMs,
    })
  }
}

class HeldSlot implements Slot {
  readonly #slots: HostSlots
  readonly #ofFunction: FunctionInHost
  readonly #costMs: number | undefined
  #isReleased = false
  #isEnded = false
  #hasHead = false

  constructor(slots: HostSlots, ofFunction: FunctionInHost, costMs: number | undefined) {
    this.#slots = slots
    this.#ofFunction = ofFunction
    this.#costMs = costMs
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#slots.released(this.#ofFunction, this.#costMs)
    if (this.#hasHead) this.#endOnce()
    this.#slots.hasMoreRoom(this.#ofFunction)
  }

  streams(): void {
    this.#hasHead = true
    if (this.#isReleased && this.#endOnce()) this.#slots.hasMoreRoom(this.#ofFunction)
  }

  end(): void {
    if (!this.#endOnce()) return
    if (this.#isReleased) this.#slots.hasMoreRoom(this.#ofFunction)
    else this.release()
  }

  #endOnce(): boolean {
    if (this.#isEnded) return false
    this.#isEnded = true
    this.#slots.ended(this.#ofFunction)
    return true
  }
}
