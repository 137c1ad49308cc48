import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { CarpoolError, FROM_OUTSIDE, monotonicClock, type Call, type CallChain, type Clock } from '@carpool/core'
import { RecentValues } from './recent-values.ts'

interface HopsOptions {
  /** Most calls in a row in which one function calls the next. */
  readonly maxHops: number
  /** Most calls that functions make because of one call from outside. */
  readonly maxNestedCalls: number
  readonly clock?: Clock
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
/** 96 bits: no two trees have one name. */
const TREE_BYTES = 12
const HEADER = /^(\d{1,4})\.([\w-]{16})\.[\w-]{22}$/
/**
 * How long a call counts for what a function does in the background, and the calls of a tree for those that still come, in ms; up
 * to twice as long.
 */
const REMEMBER_MS = 60_000
/** Trees that are remembered for so long: 8 MB or so. When there are more, it is not as long. */
const MAX_TREES = 100_000

/**
 * Counts the calls of functions that stand before a call, so that a loop of them ends: how many called each other in a row, and
 * how many come of the same call from outside, which is a tree if functions call several. What stands before travels in the
 * header `x-carpool-hops` of their fetches, as `<count>.<tree>.<code>`; the code is an HMAC that only this process can make.
 * Functions can neither set nor see the header, and what others send is worth nothing without a code. Whoever fetches through a
 * server of his own can drop it: such a loop costs its author a machine, and is bounded by the limits on concurrency alone.
 */
export class Hops {
  readonly #maxHops: number
  readonly #maxNestedCalls: number
  readonly #key: Uint8Array
  /** Of invocations under way that another function called; there is no entry for those that none did. */
  readonly #underWay = new Map<string, CallChain>()
  /** With which revisions were called last; from outside or no entry: what they do in the background begins trees of its own. */
  readonly #lately: RecentValues<CallChain>
  /** Calls of each tree. */
  readonly #calls: RecentValues<number>
  #backgroundTrees = 0
  /** Those who fetch often do so in a row. */
  #latestId: string | undefined
  #latestHeader = ''

  constructor({ maxHops, maxNestedCalls, clock = monotonicClock, key = randomBytes(32) }: HopsOptions) {
    this.#maxHops = maxHops
    this.#maxNestedCalls = maxNestedCalls
    this.#key = key
    this.#lately = new RecentValues({ clock, keptMs: REMEMBER_MS })
    this.#calls = new RecentValues({ clock, keptMs: REMEMBER_MS, maxValues: MAX_TREES })
  }

  /** What a request says of itself; that it comes from outside if this process has not written what it says. */
  fromHeader(value: string | readonly string[] | undefined): CallChain {
    if (typeof value !== 'string') return FROM_OUTSIDE
    const [, count, tree] = HEADER.exec(value) ?? []
    const hops = Number(count)
    if (tree === undefined || hops === 0 || hops > this.#maxHops + 1) return FROM_OUTSIDE
    const given = Buffer.from(value)
    const right = Buffer.from(this.#headerFor(hops, tree))
    return given.length === right.length && timingSafeEqual(given, right) ? { hops, tree } : FROM_OUTSIDE
  }

  /** The value of `x-carpool-hops` for a fetch. */
  headerOf({ revision, id }: FetchOrigin): string {
    if (id !== undefined && id === this.#latestId) return this.#latestHeader
    const { hops, tree } = this.#chainOf({ revision, id })
    const header = this.#headerFor(Math.min(hops, this.#maxHops) + 1, tree)
    this.#latestId = id
    this.#latestHeader = header
    return header
  }

  /** Counts a call in its tree. @throws CarpoolError `loop-detected` if too many stand before it, in a row or in the tree */
  check({ hops, tree, functionName }: Pick<Call, 'hops' | 'tree' | 'functionName'>): void {
    if (hops === 0) return
    if (hops > this.#maxHops) throw loop(`Functions called each other ${this.#maxHops} times in a row`, functionName)
    const before = this.#calls.get(tree) ?? 0
    this.#calls.set(tree, Math.min(before + 1, this.#maxNestedCalls))
    if (before < this.#maxNestedCalls) return
    throw loop(`Functions made ${this.#maxNestedCalls} calls because of one call from outside`, functionName)
  }

  /** A call was let in. Until {@link ended}, what it fetches counts as called by it. For calls from outside it is cheap. */
  follow({ id, hops, tree, revision }: Pick<Call, 'id' | 'hops' | 'tree' | 'revision'>): void {
    if (revision === undefined) return
    if (hops > 0) this.began({ revision: revision.id, id }, { hops, tree })
    else this.beganFromOutside(revision.id)
  }

  /** A call that another function made has begun. */
  began({ revision, id }: { revision: string; id: string }, chain: CallChain): void {
    this.#underWay.set(id, chain)
    this.#lately.set(revision, chain)
  }

  /**
   * A call from outside has begun: what the function does in the background from now on is taken to be of that. So a header that
   * somebody got to see and sends again holds up the function's own calls only until its next one.
   */
  beganFromOutside(revision: string): void {
    if (this.#lately.isEmpty) return
    if ((this.#lately.get(revision)?.hops ?? 0) > 0) this.#lately.set(revision, FROM_OUTSIDE)
  }

  /** It has its answer: what the function still does, it does in the background. */
  ended(id: string): void {
    this.#underWay.delete(id)
    if (id === this.#latestId) this.#latestId = undefined
  }

  #chainOf({ revision, id }: FetchOrigin): CallChain {
    const known = id === undefined ? this.#lately.get(revision) : this.#underWay.get(id)
    if (known !== undefined && known.hops > 0) return known
    // An upstream gets to see the name of the tree: it is not the id of the call, which may be of another owner's function.
    const tree = this.#codeOf(`tree ${id ?? `of background ${++this.#backgroundTrees}`}`, TREE_BYTES)
    return { hops: 0, tree }
  }

  #headerFor(hops: number, tree: string): string {
    const chain = `${hops}.${tree}`
    return `${chain}.${this.#codeOf(chain, CODE_BYTES)}`
  }

  #codeOf(text: string, bytes: number): string {
    return createHmac('sha256', this.#key).update(text).digest().subarray(0, bytes).toString('base64url')
  }
}

function loop(what: string, functionName: string): CarpoolError {
  const name = JSON.stringify(functionName.slice(0, 80))
  return new CarpoolError('loop-detected', `${what}; that is the limit, so ${name} is not called.`)
}
