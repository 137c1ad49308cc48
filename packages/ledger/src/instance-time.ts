import { INSTANCE_CONCURRENCY, type Clock } from '@carpool/core'

interface InUse {
  inFlight: number
  sinceMs: number
  /** Not yet taken. */
  instanceMs: number
}

/**
 * For how long instances of a function would have been in use on a platform that puts up to {@link INSTANCE_CONCURRENCY} invocations in
 * one: the integral of ceil(in flight / concurrency) over time. What it comes to since the invocation before is told with each invocation
 * that ends, so that it stands in the ledger with it.
 */
export class InstanceTime {
  readonly #clock: Clock
  readonly #inUse = new Map<string, InUse>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  began(functionName: string): void {
    const nowMs = this.#clock()
    const inUse = this.#inUse.get(functionName)
    if (inUse === undefined) return void this.#inUse.set(functionName, { inFlight: 1, sinceMs: nowMs, instanceMs: 0 })
    advance(inUse, nowMs)
    inUse.inFlight++
  }

  /** @returns instance time since this was last asked for the function, in µs */
  ended(functionName: string): number {
    const inUse = this.#inUse.get(functionName)
    if (inUse === undefined) return 0
    advance(inUse, this.#clock())
    inUse.inFlight--
    if (inUse.inFlight === 0) this.#inUse.delete(functionName)
    // What was taken before may have left a little less than nothing.
    const us = Math.max(0, Math.floor(inUse.instanceMs * 1000))
    inUse.instanceMs -= us / 1000
    return us
  }
}

function advance(inUse: InUse, nowMs: number): void {
  inUse.instanceMs += Math.ceil(inUse.inFlight / INSTANCE_CONCURRENCY) * Math.max(0, nowMs - inUse.sinceMs)
  inUse.sinceMs = nowMs
}
