// oxlint-disable typescript/unbound-method -- taking methods off their objects is the point
import { lookLike, takePlaceOf } from '../native-look.ts'
import {
  apply,
  arrayBufferMaxByteLength,
  arrayBufferResizable,
  construct,
  max,
  SafeArrayBuffer,
  setHidden,
} from '../primordials.ts'
import { keepAlso, keepFor, reserve } from './reservation.ts'

/** In V8's own words. */
const REFUSAL = 'Array buffer allocation failed'
/**
 * A buffer that can be resized counts as at least so much, in bytes: it takes pages and two entries in the process's table of memory maps however small it is,
 * and of those a process has 65,530 (Linux: vm.max_map_count).
 */
const LEAST_BYTES = 2 ** 20
const { transfer: nativeTransfer } = SafeArrayBuffer.prototype

/**
 * Replaces `ArrayBuffer` by one whose buffers count against the memory limit with all that they may be resized to (ECMAScript, section 25.1.4.1): V8 takes
 * the memory of those from the system without asking the isolate's limit. It is the same in all else.
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
