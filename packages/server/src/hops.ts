import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { CarpoolError, monotonicClock, type Call, type Clock } from '@carpool/core'

interface HopsOptions {
  /** Most calls in a row in which one function calls the next. */
  readonly maxHops: number
  readonly clock?: Clock
  /** Called for each call that is refused. */
  readonly onLoop?: () => void
  /** Secret of the codes; default: made now, so that only this process can make one. */
  readonly key?: Uint8Array
}

/** A fetch of a function, as far as it matters here. */
interface FetchOrigin {
  readonly revision: string
  /** Public id of the invocation that fetches; absent: background work. */
  readonly id?: string | undefined
}

/** 128 bits: RFC 2104, section 5, wants at least half of the hash's. */
const CODE_BYTES = 16
/** How long a call counts for what a function does in the background, in ms; up to twice as long. */
const REMEMBER_MS = 60_000

/**
 * Counts how many functions called each other before a call, so that a loop of them ends. The count travels in the header
 * `x-carpool-hops` of their fetches, as `<count>.<code>`; the code is an HMAC that only this process can make. Functions can
 * neither set nor see the header, and what others send is worth nothing without a code. Whoever fetches through a server of his
 * own can drop it: such a loop costs its author a machine, and is bounded by the limits on concurrency alone.
 */
export class Hops {
  readonly maxHops: number
  readonly #clock: Clock
  readonly #onLoop: () => void
  readonly #key: Uint8Array
  readonly #headers: string[] = []
  /** Counts of invocations under way that another function called; there is no entry for those that none did. */
  readonly #underWay = new Map<string, number>()
  /** Counts with which revisions were called last, those called lately and before that; 0 or no entry: from outside. */
  #lately = new Map<string, number>()
  #before = new Map<string, number>()
  #latelySinceMs: number

  constructor({ maxHops, clock = monotonicClock, onLoop = () => {}, key = randomBytes(32) }: HopsOptions) {
    this.maxHops = maxHops
    this.#onLoop = onLoop
    this.#clock = clock
    this.#key = key
    this.#latelySinceMs = clock()
  }

  /** The count that a request carries; 0 if it carries none that this process has written. */
  fromHeader(value: string | readonly string[] | undefined): number {
    if (typeof value !== 'string') return 0
    const hops = Number(/^(\d{1,4})\./.exec(value)?.[1] ?? 0)
    if (hops === 0 || hops > this.maxHops + 1) return 0
    const given = Buffer.from(value)
    const right = Buffer.from(this.#headerFor(hops))
    return given.length === right.length && timingSafeEqual(given, right) ? hops : 0
  }

  /** The value of `x-carpool-hops` for a fetch. */
  headerOf({ revision, id }: FetchOrigin): string {
    const hops = id === undefined ? this.#inBackground(revision) : (this.#underWay.get(id) ?? 0)
    return this.#headerFor(Math.min(hops, this.maxHops) + 1)
  }

  /** @throws CarpoolError `loop-detected` if too many functions called each other before it */
  check({ hops, functionName }: Pick<Call, 'hops' | 'functionName'>): void {
    if (hops <= this.maxHops) return
    this.#onLoop()
    throw new CarpoolError(
      'loop-detected',
      `Functions called each other ${this.maxHops} times in a row; that is the limit, so ${JSON.stringify(functionName.slice(0, 80))} is not called.`,
    )
  }

  /** A call was routed. Until {@link ended}, what it fetches counts as called by it. For calls from outside it is cheap. */
  follow({ id, hops, revision }: Pick<Call, 'id' | 'hops' | 'revision'>): void {
    if (revision === undefined) return
    if (hops > 0) this.began({ revision: revision.id, id }, hops)
    else this.beganFromOutside(revision.id)
  }

  /** A call that another function made has begun. */
  began({ revision, id }: { revision: string; id: string }, hops: number): void {
    this.#underWay.set(id, hops)
    this.#turn()
    this.#lately.set(revision, hops)
  }

  /**
   * A call from outside has begun: what the function does in the background from now on is taken to be of that. So a header that
   * somebody got to see and sends again holds up the function's own calls only until its next one.
   */
  beganFromOutside(revision: string): void {
    if (this.#lately.size === 0 && this.#before.size === 0) return
    this.#turn()
    if (this.#latest(revision) > 0) this.#lately.set(revision, 0)
  }

  /** It has its answer: what the function still does, it does in the background. */
  ended(id: string): void {
    this.#underWay.delete(id)
  }

  #inBackground(revision: string): number {
    this.#turn()
    return this.#latest(revision)
  }

  #latest(revision: string): number {
    return this.#lately.get(revision) ?? this.#before.get(revision) ?? 0
  }

  #turn(): void {
    const nowMs = this.#clock()
    const agoMs = nowMs - this.#latelySinceMs
    if (agoMs < REMEMBER_MS) return
    this.#before = agoMs < 2 * REMEMBER_MS ? this.#lately : new Map()
    this.#lately = new Map()
    this.#latelySinceMs = nowMs
  }

  #headerFor(hops: number): string {
    return (this.#headers[hops] ??= `${hops}.${this.#codeOf(hops)}`)
  }

  #codeOf(hops: number): string {
    return createHmac('sha256', this.#key).update(String(hops)).digest().subarray(0, CODE_BYTES).toString('base64url')
  }
}
