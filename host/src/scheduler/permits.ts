import { FairOrder, Flow, type Holder } from '@carpool/core'

/** Something costs at least this much, in ms: what costs nothing would always go first. */
const MIN_COST_MS = 0.02

/** The right to do something. Released exactly once; releasing it again is harmless. */
export class Permit {
  readonly holder: Holder
  /** What its holder was charged for it, in ms. */
  readonly chargedMs: number
  #onRelease: ((permit: Permit, usedMs: number) => void) | undefined

  constructor(holder: Holder, chargedMs: number, onRelease: (permit: Permit, usedMs: number) => void) {
    this.holder = holder
    this.chargedMs = chargedMs
    this.#onRelease = onRelease
  }

  /** @param usedMs what was used of the CPU with it. Default: what its holder was charged */
  release(usedMs = this.chargedMs): void {
    const onRelease = this.#onRelease
    this.#onRelease = undefined
    onRelease?.(this, usedMs)
  }
}

export interface PermitRequest {
  readonly guest: {
    /** Whose share of the CPU it takes from. */
    readonly holder: Holder
  }
  /** CPU time that it usually takes, in ms. */
  readonly costMs: number
  /** Called with the permit, at once or later; it may be released before this returns. */
  readonly begin: (permit: Permit) => void
}

/** The requests of one function that wait for a permit, oldest first. */
class WaitingRequests extends Flow {
  readonly requests: PermitRequest[] = []
}

/**
 * Permits for something of which only so much may go on at a time. The next is that of the owner, and of his function, who comes
 * first by the CPU time that it has had and is about to have ({@link FairOrder}).
 */
export class Permits {
  readonly #count: number
  readonly #order = new FairOrder((holder) => new WaitingRequests(holder), { isShortFirst: true })
  #waiting = 0
  #taken = 0
  #isGranting = false
  readonly #onRelease = ({ holder, chargedMs }: Permit, usedMs: number): void => {
    this.#taken--
    // What costs more than expected would else be served as often as what does not.
    this.used(holder, usedMs - chargedMs)
    this.#grant()
    if (this.#taken === 0 && this.#waiting === 0) this.#order.reset()
  }

  constructor(count: number) {
    this.#count = count
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#waiting
  }

  /** Calls `begin` with a permit: at once if there is one, else in its order. */
  request(request: PermitRequest): void {
    if (this.#taken < this.#count && this.#waiting === 0) return request.begin(this.#newPermit(request, 0))
    this.#waiting++
    this.#order.wait(request.guest.holder, costOf(request)).requests.push(request)
  }

  /** They have had so much of the CPU besides what was expected, in ms. Where nobody waits, nobody is owed anything. */
  used(holder: Holder, ms: number): void {
    if (this.#waiting > 0) this.#order.adjust(holder, ms)
  }

  #newPermit({ guest }: PermitRequest, chargedMs: number): Permit {
    this.#taken++
    return new Permit(guest.holder, chargedMs, this.#onRelease)
  }

  /**
   * Whoever begins may release its permit at once, which must not end in as many calls within each other as there are requests.
   */
  #grant(): void {
    if (this.#isGranting) return
    this.#isGranting = true
    while (this.#taken < this.#count && this.#waiting > 0) {
      const request = this.#takeNext()
      request.begin(this.#newPermit(request, costOf(request)))
    }
    this.#isGranting = false
  }

  #takeNext(): PermitRequest {
    const flow = this.#order.first()!
    const request = flow.requests.shift()!
    const [next] = flow.requests
    this.#waiting--
    this.#order.charge(flow, costOf(request))
    if (next === undefined) this.#order.rest(flow)
    else this.#order.expect(flow, costOf(next))
    return request
  }
}

function costOf({ costMs }: PermitRequest): number {
  return Math.max(costMs, MIN_COST_MS)
}
