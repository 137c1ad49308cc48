import {
  fromCharCode,
  jsonStringify,
  SafeMap,
  SafeRangeError,
  SafeTypeError,
  SafeUint8Array,
  stringCharCodeAt,
  stringIsWellFormed,
  stringSlice,
  stringSplit,
  stringStartsWith,
  stringToLowerCase,
  stringToWellFormed,
  typedArrayLength,
} from '../language/primordials.ts'
import { bytesOf, toText } from '../language/values.ts'
import { stripBom, Utf8Decoder } from './encoding.ts'
import { library } from './host.ts'

type Encoding = 'utf-8' | 'windows-1252' | 'utf-16le' | 'utf-16be' | (string & {})

/** The labels of the Encoding standard for the encodings that are here; the library has the others. */
const encodings = new SafeMap<string, Encoding>()
addLabels('utf-8', 'unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8')
addLabels(
  'windows-1252',
  'ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252',
)
addLabels('utf-16le', 'csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le')
addLabels('utf-16be', 'unicodefffe utf-16be')

function addLabels(encoding: Encoding, labels: string): void {
  const list = stringSplit(labels, ' ')
  for (let index = 0; index < list.length; index++) encodings.set(list[index]!, encoding)
}

/** Windows-1252 for the bytes 80 to 9F. */
const C1 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

interface ByteDecoder {
  decode(bytes: Uint8Array): string
  flush(): string
}

export class TextDecoder {
  readonly #encoding: Encoding
  readonly #fatal: boolean
  readonly #ignoreBom: boolean
  #decoder: ByteDecoder | undefined
  #bomSeen = false

  constructor(label: unknown = 'utf-8', options?: { fatal?: boolean; ignoreBOM?: boolean } | null) {
    this.#encoding = encodingOf(toText(label))
    this.#fatal = !!options?.fatal
    this.#ignoreBom = !!options?.ignoreBOM
  }

  get encoding(): string {
    return this.#encoding
  }

  get fatal(): boolean {
    return this.#fatal
  }

  get ignoreBOM(): boolean {
    return this.#ignoreBom
  }

  decode(input?: unknown, options?: { stream?: boolean } | null): string {
    const stream = !!options?.stream
    const bytes = input === undefined ? new SafeUint8Array(0) : bytesOf(input)
    if (bytes === undefined) throw new SafeTypeError('decode needs an ArrayBuffer or a view of one.')
    this.#decoder ??= makeDecoder(this.#encoding, this.#fatal)
    let text
    try {
      text = this.#decoder.decode(bytes)
      if (!stream) text += this.#decoder.flush()
    } catch (error) {
      this.#decoder = undefined
      this.#bomSeen = false
      throw error
    }
    if (!this.#bomSeen && text !== '' && stringStartsWith(this.#encoding, 'utf-')) {
      this.#bomSeen = true
      if (!this.#ignoreBom) text = stripBom(text)
    }
    if (!stream) {
      this.#decoder = undefined
      this.#bomSeen = false
    }
    return text
  }

  get [Symbol.toStringTag](): string {
    return 'TextDecoder'
  }
}

function encodingOf(label: string): Encoding {
  const encoding = encodings.get(stringToLowerCase(trimAscii(label))) ?? library('encodings').normalizeEncoding(label)
  if (encoding === null || encoding === 'replacement')
    throw new SafeRangeError(`TextDecoder has no encoding ${jsonStringify(label)}.`)
  return encoding
}

/** Without the white space of ASCII at its ends. */
function trimAscii(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isAsciiSpace(stringCharCodeAt(text, start))) start++
  while (end > start && isAsciiSpace(stringCharCodeAt(text, end - 1))) end--
  return stringSlice(text, start, end)
}

function isAsciiSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x09 || unit === 0x0a || unit === 0x0c || unit === 0x0d
}

function makeDecoder(encoding: Encoding, fatal: boolean): ByteDecoder {
  if (encoding === 'utf-8') return new Utf8Decoder(fatal)
  if (encoding === 'windows-1252') return windows1252
  if (encoding === 'utf-16le' || encoding === 'utf-16be') return new Utf16Decoder(encoding === 'utf-16be', fatal)
  return library('encodings').makeLegacyDecoder(encoding, fatal)
}

const windows1252: ByteDecoder = {
  decode(bytes) {
    let text = ''
    const length = typedArrayLength(bytes)
    for (let index = 0; index < length; index++) {
      const byte = bytes[index]!
      text += byte >= 0x80 && byte <= 0x9f ? C1[byte - 0x80]! : fromCharCode(byte)
    }
    return text
  },
  flush: () => '',
}

class Utf16Decoder implements ByteDecoder {
  readonly #bigEndian: boolean
  readonly #fatal: boolean
  #odd: number | undefined
  /** A high surrogate that waits for its partner. */
  #high = ''

  constructor(bigEndian: boolean, fatal: boolean) {
    this.#bigEndian = bigEndian
    this.#fatal = fatal
  }

  decode(bytes: Uint8Array): string {
    let text = this.#high
    this.#high = ''
    const length = typedArrayLength(bytes)
    for (let index = 0; index < length; index++) {
      const byte = bytes[index]!
      if (this.#odd === undefined) {
        this.#odd = byte
        continue
      }
      text += fromCharCode(this.#bigEndian ? (this.#odd << 8) | byte : (byte << 8) | this.#odd)
      this.#odd = undefined
    }
    const last = stringCharCodeAt(text, text.length - 1)
    if (last >= 0xd800 && last <= 0xdbff) {
      this.#high = stringSlice(text, -1)
      text = stringSlice(text, 0, -1)
    }
    return this.#check(text)
  }

  flush(): string {
    const rest = this.#odd !== undefined || this.#high !== '' ? '\ud800' : ''
    this.#odd = undefined
    this.#high = ''
    return this.#check(rest)
  }

  #check(text: string): string {
    if (this.#fatal && !stringIsWellFormed(text)) throw new SafeTypeError('The bytes are not valid UTF-16.')
    return stringToWellFormed(text)
  }
}
