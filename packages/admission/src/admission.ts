import { CarpoolError, type FunctionLimits } from '@carpool/core'

/** The right to run one invocation. Released exactly once; releasing again is harmless. */
export interface Permit {
  release(): void
}

export interface AdmissionOptions {
  /** Most invocations at the same time, in all. */
  readonly maxInFlight: number
  /** Why usage cannot be recorded now; undefined if it can. What cannot be billed is not run. */
  readonly ledgerUnavailable?: () => string | undefined
}

/** Decides whether an invocation may run now, by how many do already. */
export class Admission {
  readonly #maxInFlight: number
  readonly #ledgerUnavailable: () => string | undefined
  readonly #inFlightOf = new Map<string, number>()
  #inFlight = 0

  constructor({ maxInFlight, ledgerUnavailable = () => undefined }: AdmissionOptions) {
    this.#maxInFlight = maxInFlight
    this.#ledgerUnavailable = ledgerUnavailable
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /** @throws CarpoolError `ledger-unavailable` while usage cannot be recorded, `too-many-requests` at the function's own limit, `saturated` at the server's */
  admit(functionName: string, { concurrency }: FunctionLimits): Permit {
    if (this.#ledgerUnavailable() !== undefined) {
      throw new CarpoolError('ledger-unavailable', 'Usage cannot be recorded at the moment, so nothing is run.')
    }
    const running = this.#inFlightOf.get(functionName) ?? 0
    if (running >= concurrency) {
      throw new CarpoolError(
        'too-many-requests',
        `${functionName} is at its limit of ${concurrency} invocations at the same time.`,
      )
    }
    if (this.#inFlight >= this.#maxInFlight) {
      throw new CarpoolError('saturated', `The server is at its limit of ${this.#maxInFlight} invocations at the same time.`)
    }
    this.#inFlight++
    this.#inFlightOf.set(functionName, running + 1)
    let released = false
    const release = (): void => {
      if (released) return
      released = true
      this.#inFlight--
      const left = (this.#inFlightOf.get(functionName) ?? 1) - 1
      if (left === 0) this.#inFlightOf.delete(functionName)
      else this.#inFlightOf.set(functionName, left)
    }
    return { release }
  }
}
