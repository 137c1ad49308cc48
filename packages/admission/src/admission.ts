import { CarpoolError, type Call } from '@carpool/core'

export interface AdmissionOptions {
  /** Most invocations at the same time, in all. */
  readonly maxInFlight: number
  /** Most invocations at the same time of all functions of one owner. Default: no limit but `maxInFlight`. */
  readonly maxPerOwner?: number
  /** Why usage cannot be recorded now; undefined if it can. What cannot be billed is not run. */
  readonly ledgerUnavailable?: () => string | undefined
}

/** Decides whether an invocation may run now, by how many are in flight already. */
export class Admission {
  readonly #maxInFlight: number
  readonly #maxPerOwner: number
  readonly #ledgerUnavailable: () => string | undefined
  readonly #inFlightOf = new Map<string, number>()
  readonly #inFlightOfOwner = new Map<string, number>()
  #inFlight = 0

  constructor({ maxInFlight, maxPerOwner = Infinity, ledgerUnavailable = () => undefined }: AdmissionOptions) {
    this.#maxInFlight = maxInFlight
    this.#maxPerOwner = maxPerOwner
    this.#ledgerUnavailable = ledgerUnavailable
  }

  get inFlight(): number {
    return this.#inFlight
  }

  /**
   * @throws CarpoolError `ledger-unavailable` while usage cannot be recorded, `too-many-requests` at the limit of the
   * function or of its owner, `saturated` at the server's
   */
  admit(call: Call): void {
    const { functionName, revision } = call
    if (revision === undefined) throw new Error('A call was to be admitted before it was routed.')
    const { owner, limits } = revision
    if (this.#ledgerUnavailable() !== undefined) {
      throw new CarpoolError('ledger-unavailable', 'Usage cannot be recorded at the moment, so nothing is run.')
    }
    if ((this.#inFlightOf.get(functionName) ?? 0) >= limits.concurrency) {
      throw new CarpoolError(
        'too-many-requests',
        `${functionName} is at its limit of ${limits.concurrency} invocations at the same time.`,
      )
    }
    if ((this.#inFlightOfOwner.get(owner) ?? 0) >= this.#maxPerOwner) {
      throw new CarpoolError(
        'too-many-requests',
        `The functions of the owner of ${functionName} are at their common limit of ${this.#maxPerOwner} invocations at the same time.`,
      )
    }
    if (this.#inFlight >= this.#maxInFlight) {
      throw new CarpoolError('saturated', `The server is at its limit of ${this.#maxInFlight} invocations at the same time.`)
    }
    this.#inFlight++
    increment(this.#inFlightOf, functionName)
    increment(this.#inFlightOfOwner, owner)
    call.isAdmitted = true
  }

  /** The call has ended. Harmless when repeated, and for one that was not admitted. */
  release(call: Call): void {
    if (!call.isAdmitted) return
    call.isAdmitted = false
    this.#inFlight--
    decrement(this.#inFlightOf, call.functionName)
    decrement(this.#inFlightOfOwner, call.revision?.owner ?? '')
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

/** A count of 0 stays: a Map whose keys come and go costs more than the few that it has. */
function decrement(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 1) - 1)
}
