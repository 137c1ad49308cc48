import type { GuestOptions } from '../../bridge.ts'
import { reportUncaught } from '../errors/report-uncaught.ts'
import type { Invocation } from '../invocation.ts'
import { max } from '../primordials.ts'
import { epochMs } from '../time/clock.ts'

/** The third argument of a fetch handler. */
export class ExecutionContext {
  readonly #invocation: Invocation
  readonly #options: GuestOptions

  constructor(invocation: Invocation, options: GuestOptions) {
    this.#invocation = invocation
    this.#options = options
  }

  get invocationId(): string {
    return this.#invocation.head.invocationId
  }

  get functionName(): string {
    return this.#options.functionName
  }

  get revision(): string {
    return this.#options.revision
  }

  /** Work that goes on after the response; if it fails, that is logged. */
  waitUntil(promise: unknown): void {
    void watch(promise)
  }

  /** Does nothing: there is no origin to pass on to. */
  passThroughOnException(): void {}

  /** Until the wall limit ends the invocation; never below 0. */
  getRemainingTimeInMillis(): number {
    return remainingMs(this.#invocation, this.#options)
  }

  get [Symbol.toStringTag](): string {
    return 'ExecutionContext'
  }
}

async function watch(promise: unknown): Promise<void> {
  try {
    await promise
  } catch (error) {
    reportUncaught(error, 'rejection in waitUntil')
  }
}

export function remainingMs(invocation: Invocation, options: GuestOptions): number {
  return max(0, invocation.startedMs + options.limits.wallMs - epochMs())
}
