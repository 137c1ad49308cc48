import type { List } from './primordials.ts'
import type { Pair } from './pair-list.ts'

type Kind = 'entries' | 'keys' | 'values'

/** Iterates pairs as WebIDL says: it sees changes that are made meanwhile, for `read` is asked anew at each step. */
export function pairIterator(owner: string, read: () => List<Pair>, kind: 'keys' | 'values'): IteratorObject<string>
export function pairIterator(owner: string, read: () => List<Pair>, kind: 'entries'): IteratorObject<[string, string]>
export function pairIterator(owner: string, read: () => List<Pair>, kind: Kind): IteratorObject<unknown> {
  return new PairIterator(owner, read, kind)
}

class PairIterator extends Iterator<unknown, undefined> {
  readonly #owner: string
  readonly #read: () => List<Pair>
  readonly #kind: Kind
  #index = 0

  constructor(owner: string, read: () => List<Pair>, kind: Kind) {
    super()
    this.#owner = owner
    this.#read = read
    this.#kind = kind
  }

  next(): IteratorResult<unknown, undefined> {
    const pair = this.#read()[this.#index++]
    if (pair === undefined) return { value: undefined, done: true }
    const value = this.#kind === 'keys' ? pair[0] : this.#kind === 'values' ? pair[1] : [pair[0], pair[1]]
    return { value, done: false }
  }

  override get [Symbol.toStringTag](): string {
    return `${this.#owner} Iterator`
  }
}

// User code must not make iterators of its own.
delete (PairIterator.prototype as { constructor?: unknown }).constructor
