import { SafeArrayBuffer, SafeRangeError, SafeWeakMap } from '../primordials.ts'

interface Kept {
  readonly reservation: ArrayBuffer
  readonly before: Kept | undefined
}

/** Buffers by what they are kept for. */
const kept = new SafeWeakMap<object, Kept>()

/**
 * V8 does not count all memory against a limit, so a buffer that nobody ever touches stands for it: of that, the limit of the isolate counts every
 * byte, and makes V8 collect garbage when it is short. Never touched, it takes no memory of the machine.
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
