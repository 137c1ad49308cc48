import { defineProperty, type List, SafeList } from '../language/primordials.ts'

/** A name and a value. */
export type Pair = [name: string, value: string]

/** The value of the first pair of a name; null if there is none. */
export function firstValue(pairs: List<Pair>, name: string): string | null {
  const index = findPair(pairs, name, undefined)
  return index === -1 ? null : pairs[index]![1]
}

/** The values of all pairs of a name. */
export function allValues(pairs: List<Pair>, name: string): List<string> {
  const values = new SafeList<string>()
  for (let index = 0; index < pairs.length; index++) {
    const pair = pairs[index]!
    if (pair[0] === name) values[values.length] = pair[1]
  }
  return values
}

/** Whether there is a pair of a name, and of a value if one is given. */
export function hasPair(pairs: List<Pair>, name: string, value: string | undefined): boolean {
  return findPair(pairs, name, value) !== -1
}

/** Removes the pairs of a name, only those of a value if one is given, and but for the one at `kept`. */
export function removePairs(pairs: List<Pair>, name: string, value: string | undefined, kept = -1): void {
  let length = 0
  for (let index = 0; index < pairs.length; index++) {
    const pair = pairs[index]!
    if (index === kept || pair[0] !== name || (value !== undefined && pair[1] !== value)) pairs[length++] = pair
  }
  pairs.length = length
}

/** Gives the first pair of a name the value and removes the others of the name; adds one if there is none. */
export function setPair(pairs: List<Pair>, name: string, value: string): void {
  const first = findPair(pairs, name, undefined)
  if (first === -1) {
    pairs[pairs.length] = [name, value]
    return
  }
  removePairs(pairs, name, undefined, first)
  pairs[first] = [name, value]
}

function findPair(pairs: List<Pair>, name: string, value: string | undefined): number {
  for (let index = 0; index < pairs.length; index++) {
    const pair = pairs[index]!
    if (pair[0] === name && (value === undefined || pair[1] === value)) return index
  }
  return -1
}

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

// As WebIDL has it.
defineProperty(PairIterator.prototype, 'next', { enumerable: true })
// User code must not make iterators of its own.
delete (PairIterator.prototype as { constructor?: unknown }).constructor
