import { type Bytes, bytesOf } from './bytes.ts'
import { environment, type NodeBuffer } from './environment.ts'
import { toText } from './text.ts'
import { invalidType, nodeError } from './errors.ts'

const BYTES = 'of type string or an instance of ArrayBuffer, Buffer, TypedArray, or DataView'

/** The bytes of what user code gave. @throws TypeError */
export function toBytes(data: unknown, name = 'data', encoding?: unknown): Bytes {
  if (typeof data === 'string') return fromText(data, encoding)
  return bytesOf(data) ?? raise(invalidType(name, BYTES, data))
}

function fromText(text: string, encoding: unknown): Bytes {
  const { Buffer } = environment
  if (encoding === undefined || encoding === 'buffer') return Buffer.from(text)
  if (typeof encoding !== 'string' || !Buffer.isEncoding(encoding)) {
    throw nodeError('ERR_UNKNOWN_ENCODING', `Unknown encoding: ${toText(encoding)}`, TypeError)
  }
  return Buffer.from(text, encoding)
}

export function raise(error: Error): never {
  throw error
}

/** A Buffer of the same memory. */
export function toBuffer(bytes: Bytes | ArrayBuffer): NodeBuffer {
  if (bytes instanceof ArrayBuffer) return environment.Buffer.from(bytes)
  return environment.Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** A Buffer, or text where an encoding is asked for. */
export function encoded(bytes: Bytes | ArrayBuffer, encoding: unknown): NodeBuffer | string {
  const buffer = toBuffer(bytes)
  return encoding === undefined || encoding === null || encoding === 'buffer' ? buffer : buffer.toString(toText(encoding))
}

export type Callback<T extends unknown[] = [unknown?]> = (error: Error | null, ...results: T) => void

declare const queueMicrotask: (task: () => void) => void

/** Does the work at once, for it is done on this thread in any case, and tells what came of it after the caller has gone on. */
export function later(callback: unknown, work: () => unknown): void {
  if (typeof callback !== 'function') throw invalidType('callback', 'of type function', callback)
  let tell: () => void
  try {
    const result = work()
    tell = () => (callback as Callback)(null, result)
  } catch (error) {
    tell = () => (callback as Callback)(error as Error)
  }
  queueMicrotask(tell)
}

/** @throws TypeError, RangeError */
export function toInteger(value: unknown, name: string, min = 0, max = 2 ** 31 - 1): number {
  if (typeof value !== 'number') throw invalidType(name, 'of type number', value)
  if (!Number.isInteger(value) || value < min || value > max) {
    const message = `The value of "${name}" is out of range. It must be >= ${min} && <= ${max}. Received ${value}`
    throw nodeError('ERR_OUT_OF_RANGE', message, RangeError)
  }
  return value
}
