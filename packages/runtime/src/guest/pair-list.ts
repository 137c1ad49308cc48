import { type List, SafeList } from './primordials.ts'

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
