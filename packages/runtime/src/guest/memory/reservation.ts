import { SafeArrayBuffer, SafeRangeError, SafeWeakMap } from '../primordials.ts'

interface Kept {
  readonly reservation: ArrayBuffer
  readonly before: Kept | undefined
}

/** Buffers by what they are kept for. */
const kept = new SafeWeakMap<object, Kept>()

/**
 * V8 does not count all memory against a limit, so a buffer that nobody ever touches stands for it: of that, the limit of the isolate counts every
 * byte, and makes V8 collect garbage when it is short. Never touched, a large one takes no memory of the machine; a small one may, for then the allocator
 * clears it.
 * @param refusal message of the error
 * @throws RangeError if there is not as much left
 */
export function reserve(bytes: number, refusal: string): ArrayBuffer {
  try {
    return new SafeArrayBuffer(bytes)
  } catch {
    throw new SafeRangeError(refusal)
  }
}

/** How many share one reservation: one for each would cost as much as what it stands for. */
const SHARERS = 16

/** Reservations for many things of one size. @returns gives the one that the next of them shares with a few others */
export function shared(bytes: number, refusal: string): () => ArrayBuffer {
  let reservation: ArrayBuffer | undefined
  let left = 0
  return () => {
    if (left === 0 || reservation === undefined) {
      reservation = reserve(bytes * SHARERS, refusal)
      left = SHARERS
    }
    left--
    return reservation
  }
}

/** Keeps a reservation, with those that are kept for the object already, for as long as there is the object. */
export function keepFor(owner: object, reservation: ArrayBuffer): void {
  kept.set(owner, { reservation, before: kept.get(owner) })
}

/** What is kept for one object is kept for another as well. */
export function keepAlso(owner: object, other: object): void {
  const reservations = kept.get(other)
  if (reservations !== undefined) kept.set(owner, reservations)
}

export function isKept(owner: object): boolean {
  return kept.has(owner)
}
