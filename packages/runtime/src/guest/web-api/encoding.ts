import {
  bytesCopy,
  bytesFromBase64,
  bytesToBase64,
  fromCharCode,
  fromUnits,
  min,
  regExpExec,
  SafeList,
  SafeTypeError,
  SafeUint8Array,
  stringCharCodeAt,
  stringSlice,
  typedArrayLength,
  viewName,
} from '../language/primordials.ts'
import { toText } from '../language/values.ts'
import { DOMException } from './dom-exception.ts'

/** As many arguments as `apply` takes without coming near the limit of the stack. */
const CHUNK = 4096

/** One character for each byte. */
export function latin1FromBytes(bytes: Uint8Array): string {
  const length = typedArrayLength(bytes)
  let text = ''
  for (let start = 0; start < length; start += CHUNK) {
    const end = min(start + CHUNK, length)
    const units = new SafeList<number>()
    for (let index = start; index < end; index++) units[index - start] = bytes[index]!
    text += fromUnits(units)
  }
  return text
}

/** One byte for each character; what is above U+00FF loses its upper bits. */
export function bytesFromLatin1(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new SafeUint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = stringCharCodeAt(text, index)
  return bytes
}

/** One character for each byte, to base64. */
export function base64FromLatin1(text: string): string {
  return bytesToBase64(bytesFromLatin1(text))
}

/** Base64, with or without padding, to one character for each byte. @throws SyntaxError */
export function latin1FromBase64(text: string): string {
  return latin1FromBytes(bytesFromBase64(text))
}

export function btoa(...args: unknown[]): string {
  if (args.length === 0) throw new SafeTypeError('btoa needs an argument.')
  const text = toText(args[0])
  if (regExpExec(/[^\0-\xff]/, text) !== null) {
    throw new DOMException('btoa takes characters up to U+00FF only.', 'InvalidCharacterError')
  }
  return base64FromLatin1(text)
}

export function atob(...args: unknown[]): string {
  if (args.length === 0) throw new SafeTypeError('atob needs an argument.')
  try {
    return latin1FromBase64(toText(args[0]))
  } catch (error) {
    if (typeof args[0] === 'symbol') throw error
    throw new DOMException('Invalid character: the text is not valid base64.', 'InvalidCharacterError')
  }
}

const REPLACEMENT = 0xfffd
const BOM = 0xfeff

/** Encodes as UTF-8; a surrogate without its partner becomes U+FFFD. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  const { length } = text
  // Most texts are ASCII: try with a byte for each unit, and start over with room for three at the first that is not.
  const bytes = new SafeUint8Array(length)
  for (let index = 0; index < length; index++) {
    const unit = stringCharCodeAt(text, index)
    if (unit >= 0x80) {
      const wide = new SafeUint8Array(length * 3)
      return bytesCopy(wide, encodeInto(text, wide).written)
    }
    bytes[index] = unit
  }
  return bytes
}

/** Encodes as many whole characters as the bytes have room for. `read` counts UTF-16 units. */
export function encodeInto(text: string, bytes: Uint8Array): { read: number; written: number } {
  const room = typedArrayLength(bytes)
  let written = 0
  let read = 0
  for (; read < text.length; read++) {
    let point = stringCharCodeAt(text, read)
    let units = 1
    if (point >= 0xd800 && point <= 0xdfff) {
      const low = point <= 0xdbff && read + 1 < text.length ? stringCharCodeAt(text, read + 1) : 0
      if (low >= 0xdc00 && low <= 0xdfff) {
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00)
        units = 2
      } else {
        point = REPLACEMENT
      }
    }
    const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4
    if (written + size > room) break
    if (size === 1) {
      bytes[written++] = point
    } else {
      if (size === 2) bytes[written++] = 0xc0 | (point >> 6)
      else if (size === 3) bytes[written++] = 0xe0 | (point >> 12)
      else bytes[written++] = 0xf0 | (point >> 18)
      if (size === 4) bytes[written++] = 0x80 | ((point >> 12) & 0x3f)
      if (size >= 3) bytes[written++] = 0x80 | ((point >> 6) & 0x3f)
      bytes[written++] = 0x80 | (point & 0x3f)
    }
    if (units === 2) read++
  }
  return { read, written }
}

/** Removes one byte order mark at the start. */
export function stripBom(text: string): string {
  return text.length > 0 && stringCharCodeAt(text, 0) === BOM ? stringSlice(text, 1) : text
}

/** Decodes a whole UTF-8 text, with U+FFFD for what is not valid; a byte order mark stays. */
export function decodeUtf8(bytes: Uint8Array): string {
  const decoder = new Utf8Decoder(false)
  return decoder.decode(bytes) + decoder.flush()
}

/** The text, with its byte order mark; undefined if the bytes are not valid UTF-8. */
export function textOfUtf8(bytes: Uint8Array): string | undefined {
  const decoder = new Utf8Decoder(true)
  try {
    return decoder.decode(bytes) + decoder.flush()
  } catch {
    return undefined
  }
}

/** The UTF-8 decoder of the Encoding standard; carries a character that was cut over to the next call. */
export class Utf8Decoder {
  readonly #fatal: boolean
  #point = 0
  #needed = 0
  #lower = 0x80
  #upper = 0xbf

  constructor(fatal: boolean) {
    this.#fatal = fatal
  }

  /** @throws TypeError if `fatal` and the bytes are not valid */
  decode(bytes: Uint8Array): string {
    let text = ''
    let units = new SafeList<number>()
    const length = typedArrayLength(bytes)
    for (let index = 0; index < length; index++) {
      const byte = bytes[index]!
      if (this.#needed === 0) {
        if (byte < 0x80) units[units.length] = byte
        else if (!this.#start(byte)) units[units.length] = this.#invalid()
      } else if (byte < this.#lower || byte > this.#upper) {
        this.#reset()
        units[units.length] = this.#invalid()
        // The byte may begin a character of its own.
        index--
      } else {
        this.#lower = 0x80
        this.#upper = 0xbf
        this.#point = (this.#point << 6) | (byte & 0x3f)
        if (--this.#needed === 0) {
          if (this.#point > 0xffff) {
            units[units.length] = 0xd800 + ((this.#point - 0x10000) >> 10)
            units[units.length] = 0xdc00 + ((this.#point - 0x10000) & 0x3ff)
          } else {
            units[units.length] = this.#point
          }
        }
      }
      if (units.length >= CHUNK) {
        text += fromUnits(units)
        units = new SafeList()
      }
    }
    return text + fromUnits(units)
  }

  /** Ends the text: what is left of a cut character becomes U+FFFD. @throws TypeError if `fatal` and there is one */
  flush(): string {
    if (this.#needed === 0) return ''
    this.#reset()
    return fromCharCode(this.#invalid())
  }

  #start(byte: number): boolean {
    if (byte >= 0xc2 && byte <= 0xdf) {
      this.#needed = 1
      this.#point = byte & 0x1f
    } else if (byte >= 0xe0 && byte <= 0xef) {
      if (byte === 0xe0) this.#lower = 0xa0
      if (byte === 0xed) this.#upper = 0x9f
      this.#needed = 2
      this.#point = byte & 0x0f
    } else if (byte >= 0xf0 && byte <= 0xf4) {
      if (byte === 0xf0) this.#lower = 0x90
      if (byte === 0xf4) this.#upper = 0x8f
      this.#needed = 3
      this.#point = byte & 0x07
    } else {
      return false
    }
    return true
  }

  #reset(): void {
    this.#needed = 0
    this.#point = 0
    this.#lower = 0x80
    this.#upper = 0xbf
  }

  #invalid(): number {
    if (this.#fatal) {
      this.#reset()
      throw new SafeTypeError('The bytes are not valid UTF-8.')
    }
    return REPLACEMENT
  }
}

export class TextEncoder {
  get encoding(): string {
    return 'utf-8'
  }

  encode(input: unknown = ''): Uint8Array<ArrayBuffer> {
    return encodeUtf8(toText(input))
  }

  encodeInto(source: unknown, destination: Uint8Array): { read: number; written: number } {
    if (viewName(destination) !== 'Uint8Array') throw new SafeTypeError('encodeInto needs a Uint8Array to write to.')
    return encodeInto(toText(source), destination)
  }

  get [Symbol.toStringTag](): string {
    return 'TextEncoder'
  }
}
