export type Bytes = Uint8Array<ArrayBuffer>

export const NO_BYTES: Bytes = new Uint8Array(0)

/** The bytes of a buffer or a view, not copied; undefined for anything else. */
export function bytesOf(source: unknown): Bytes | undefined {
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer as ArrayBuffer, source.byteOffset, source.byteLength)
  return isArrayBuffer(source) ? new Uint8Array(source) : undefined
}

function isArrayBuffer(value: unknown): value is ArrayBuffer {
  return Object.prototype.toString.call(value) === '[object ArrayBuffer]'
}

export function concat(...parts: readonly Uint8Array[]): Bytes {
  let size = 0
  for (const part of parts) size += part.length
  const whole = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function equals(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index])
}

export function fromBase64Url(text: string): Bytes | undefined {
  try {
    return Uint8Array.fromBase64(text, { alphabet: 'base64url' })
  } catch {
    return undefined
  }
}

export function toBase64Url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: 'base64url', omitPadding: true })
}

/** Without zeroes in front, but for a last one. */
export function trimZeroes(bytes: Bytes): Bytes {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  return bytes.subarray(start)
}

/** With zeroes in front, to so many bytes. */
export function padZeroes(bytes: Bytes, size: number): Bytes {
  const trimmed = trimZeroes(bytes)
  const padded = new Uint8Array(size)
  padded.set(trimmed, size - trimmed.length)
  return padded
}

export function uint32(value: number): Bytes {
  const bytes = new Uint8Array(4)
  new DataView(bytes.buffer).setUint32(0, value)
  return bytes
}
