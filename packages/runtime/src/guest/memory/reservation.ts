// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import {
  apply,
  arrayBufferMaxByteLength,
  arrayBufferResizable,
  construct,
  max,
  SafeArrayBuffer,
  SafeRangeError,
  SafeWeakMap,
  setHidden,
} from '../language/primordials.ts'
import { lookLike, takePlaceOf } from '../language/substitutes.ts'

interface Kept {
  readonly reservation: ArrayBuffer
  readonly before: Kept | undefined
}

/** Buffers by what they are kept for. */
const kept = new SafeWeakMap<object, Kept>()

/**
 * V8 does not count all memory against a limit, so a buffer that nobody ever touches stands for what it does not count: of a
 * buffer the limit of the isolate counts every byte, and V8 collects garbage when it is short. Never touched, a large one takes
 * no memory of the machine; a small one may, for then the allocator clears it.
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

/** In V8's own words. */
const REFUSAL = 'Array buffer allocation failed'
/**
 * A buffer that can be resized counts as at least so much, in bytes. However small, it takes pages and two entries in the
 * process's table of memory maps, of which a process has 65,530 (Linux: vm.max_map_count).
 */
const LEAST_BYTES = 2 ** 20
const { transfer: nativeTransfer } = SafeArrayBuffer.prototype

/**
 * Replaces `ArrayBuffer` by one whose buffers count against the memory limit with all that they may be resized to (ECMAScript,
 * section 25.1.4.1): V8 takes their memory from the system without asking the isolate's limit. It is the same in all else.
 */
export function installArrayBuffer(target: object): void {
  function GuestArrayBuffer(...args: unknown[]): unknown {
    // Without `new` it refuses to be called.
    if (new.target === undefined) return apply(SafeArrayBuffer, undefined, args)
    // For the most usual call, which this makes faster.
    if (new.target === GuestArrayBuffer && args.length === 1) return new SafeArrayBuffer(args[0] as number)
    return counted(construct(SafeArrayBuffer, args, new.target) as ArrayBuffer)
  }
  const { transfer } = {
    transfer(this: ArrayBuffer, ...args: unknown[]): ArrayBuffer {
      const moved = apply(nativeTransfer, this, args) as ArrayBuffer
      keepAlso(moved, this)
      return moved
    },
  }
  takePlaceOf(GuestArrayBuffer, SafeArrayBuffer)
  setHidden(SafeArrayBuffer.prototype, 'transfer', lookLike(transfer, nativeTransfer))
  setHidden(target, 'ArrayBuffer', GuestArrayBuffer)
}

/** A buffer that can be resized, and counts with all that it may grow to. @throws RangeError if there is not as much left */
export function resizableBuffer(byteLength: number, maxByteLength: number): ArrayBuffer {
  return counted(new SafeArrayBuffer(byteLength, { maxByteLength }))
}

function counted(buffer: ArrayBuffer): ArrayBuffer {
  if (arrayBufferResizable(buffer)) keepFor(buffer, reserve(max(arrayBufferMaxByteLength(buffer), LEAST_BYTES), REFUSAL))
  return buffer
}
