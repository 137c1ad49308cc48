/** Texts as bytes and back, as the native part of Node.js' Buffer makes them. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
const encoder = new TextEncoder()
/** The most arguments of one call. */
const CHUNK = 4096
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

export type Bytes = Uint8Array

function fromCodes(codes: Uint8Array | Uint16Array, mask = 0xffff): string {
  let text = ''
  for (let start = 0; start < codes.length; start += CHUNK) {
    const part = codes.subarray(start, start + CHUNK)
    text += String.fromCharCode.apply(
      undefined,
      (mask === 0xffff ? part : part.map((code) => code & mask)) as unknown as number[],
    )
  }
  return text
}

/** `start` and `end` as given to the methods `utf8Slice` and the like. */
function part(bytes: Bytes, start?: number, end?: number): Bytes {
  const from = Math.min(Math.max(start ?? 0, 0), bytes.length)
  const to = Math.min(Math.max(end ?? bytes.length, from), bytes.length)
  return new Uint8Array(bytes.buffer, bytes.byteOffset + from, to - from)
}

export const slices = {
  utf8Slice: (bytes: Bytes): string => {
    // Short ASCII texts are most of what is read.
    if (bytes.length <= 64 && bytes.every((byte) => byte < 0x80)) return fromCodes(bytes)
    return decoder.decode(bytes)
  },
  asciiSlice: (bytes: Bytes): string => fromCodes(bytes, 0x7f),
  latin1Slice: (bytes: Bytes): string => fromCodes(bytes),
  hexSlice: (bytes: Bytes): string => {
    let text = ''
    for (let index = 0; index < bytes.length; index++) text += HEX[bytes[index]!]!
    return text
  },
  ucs2Slice: (bytes: Bytes): string => {
    const even = bytes.length & ~1
    return fromCodes(new Uint16Array(bytes.slice(0, even).buffer))
  },
  base64Slice: (bytes: Bytes): string => bytes.toBase64(),
  base64urlSlice: (bytes: Bytes): string => bytes.toBase64({ alphabet: 'base64url', omitPadding: true }),
} as const

export type SliceName = keyof typeof slices

export function slice(name: SliceName, bytes: Bytes, start?: number, end?: number): string {
  return slices[name](part(bytes, start, end))
}

export function byteLengthUtf8(text: string): number {
  let length = text.length
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit < 0x80) continue
    if (unit < 0x800) length += 1
    else {
      length += 2
      if (unit >= 0xd800 && unit <= 0xdbff) {
        const low = text.charCodeAt(index + 1)
        if (low >= 0xdc00 && low <= 0xdfff) index += 1
      }
    }
  }
  return length
}

const hexDigit = (code: number): number => {
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 102 ? letter - 87 : -1
}

function hexBytes(text: string, room: number): Bytes {
  const bytes = new Uint8Array(Math.min(text.length >>> 1, room))
  for (let index = 0; index < bytes.length; index++) {
    const high = hexDigit(text.charCodeAt(index * 2))
    const low = hexDigit(text.charCodeAt(index * 2 + 1))
    if (high < 0 || low < 0) return bytes.subarray(0, index)
    bytes[index] = high * 16 + low
  }
  return bytes
}

const BASE64 = new Int8Array(256).fill(-1)
for (const [index, letter] of Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/').entries()) {
  BASE64[letter.charCodeAt(0)] = index
}
BASE64['-'.charCodeAt(0)] = 62
BASE64['_'.charCodeAt(0)] = 63

/** Both alphabets at once, what is in neither is passed over, and the first `=` is the end. */
function base64Bytes(text: string): Bytes {
  if (/^[A-Za-z\d+/]*={0,2}$/.test(text) && text.length % 4 === 0) {
    // A last letter that holds bits of no byte is read all the same.
    return Uint8Array.fromBase64(text, { lastChunkHandling: 'loose' })
  }
  const bytes = new Uint8Array(Math.ceil((text.length * 3) / 4))
  let length = 0
  let bits = 0
  let held = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 61) break
    const value = code < 256 ? BASE64[code]! : -1
    if (value < 0) continue
    held = ((held << 6) | value) & 0xffffff
    bits += 6
    if (bits >= 8) {
      bits -= 8
      bytes[length++] = (held >> bits) & 0xff
    }
  }
  return bytes.subarray(0, length)
}

const codes = (text: string): Bytes => {
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}

function ucs2Bytes(text: string): Bytes {
  const units = new Uint16Array(text.length)
  for (let index = 0; index < text.length; index++) units[index] = text.charCodeAt(index)
  return new Uint8Array(units.buffer)
}

/** The bytes of a text in an encoding, by the number that Node.js has for it: see ENCODINGS. */
export function encode(text: string, encoding: EncodingName): Bytes {
  switch (encoding) {
    case 'ucs2':
    case 'utf16le':
      return ucs2Bytes(text)
    case 'latin1':
    case 'ascii':
      return codes(text)
    case 'base64':
    case 'base64url':
      return base64Bytes(text)
    case 'hex':
      return hexBytes(text, Infinity)
    default:
      return encoder.encode(text)
  }
}

/** In the order of Node.js' own numbers. */
export const ENCODINGS = ['ascii', 'utf8', 'base64', 'utf16le', 'latin1', 'hex', 'buffer', 'base64url'] as const
export type EncodingName = (typeof ENCODINGS)[number] | 'ucs2'

/** Writes as much of a text as fits; never half of a character. @returns how many bytes were written */
export function write(bytes: Bytes, text: string, encoding: EncodingName, offset = 0, length = bytes.length - offset): number {
  const room = Math.max(0, Math.min(length, bytes.length - offset))
  if (encoding === 'utf8') return encoder.encodeInto(text, part(bytes, offset, offset + room)).written
  const encoded = encode(text, encoding)
  const whole = encoding === 'utf16le' || encoding === 'ucs2' ? room & ~1 : room
  const written = encoded.length > whole ? encoded.subarray(0, whole) : encoded
  bytes.set(written, offset)
  return written.length
}
