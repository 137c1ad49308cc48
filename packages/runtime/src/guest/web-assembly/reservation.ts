import { SafeArrayBuffer, SafeRangeError, SafeWeakMap } from '../primordials.ts'

interface Kept {
  readonly reservation: ArrayBuffer
  readonly before: Kept | undefined
}

/** Buffers by what they are kept for. */
const kept = new SafeWeakMap<object, Kept>()

/**
 * V8 counts neither the memory nor the machine code of WebAssembly against a limit, so a buffer that nobody ever touches stands for it: of that, the
 * limit of the isolate counts every byte, and makes V8 collect garbage when it is short. Never touched, it takes no memory of the machine.
 * @param what begins the message of the error: "A memory of 3 pages"
 * @throws RangeError if there is not as much left
 */
export function reserve(bytes: number, what: string, memoryMb: number): ArrayBuffer {
  try {
    return new SafeArrayBuffer(bytes)
  } catch {
    throw new SafeRangeError(`${what} does not fit into what is left of the memory limit of ${memoryMb} MiB.`)
  }
}

/** Keeps a reservation, with those that are kept for the object already, for as long as there is the object. */
export function keepFor(owner: object, reservation: ArrayBuffer): void {
  kept.set(owner, { reservation, before: kept.get(owner) })
}

export function isKept(owner: object): boolean {
  return kept.has(owner)
}
