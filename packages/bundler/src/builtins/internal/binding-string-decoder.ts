/**
 * The native part of Node.js' `string_decoder`: a decoder's state is a few bytes, laid out as its JavaScript expects. Bytes of a
 * character that is not complete wait in it.
 */
import { ENCODINGS, slice } from './buffer-codecs.ts'

const kIncompleteCharactersStart = 0
const kIncompleteCharactersEnd = 4
const kMissingBytes = 4
const kBufferedBytes = 5
const kEncodingField = 6
const kNumFields = 7
const kSize = 7

type Bytes = Uint8Array

const SLICES = {
  ascii: 'asciiSlice',
  utf8: 'utf8Slice',
  base64: 'base64Slice',
  utf16le: 'ucs2Slice',
  latin1: 'latin1Slice',
  hex: 'hexSlice',
  buffer: 'latin1Slice',
  base64url: 'base64urlSlice',
} as const

const encodingOf = (state: Bytes): (typeof ENCODINGS)[number] => ENCODINGS[state[kEncodingField]!] ?? 'utf8'

/** How many bytes at the end are the beginning of a character, and how many it lacks. */
function unfinished(bytes: Bytes, encoding: string): readonly [held: number, missing: number] {
  const { length } = bytes
  if (encoding === 'utf8') {
    for (let back = 1; back <= Math.min(3, length); back++) {
      const byte = bytes[length - back]!
      if ((byte & 0xc0) === 0x80) continue
      const size = byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xf0 && byte < 0xf5 ? 4 : 1
      if (size <= back) return [0, 0]
      const second = bytes[length - back + 1]
      return back > 1 && !isSecond(byte, second!) ? [0, 0] : [back, size - back]
    }
    return [0, 0]
  }
  if (encoding === 'utf16le') {
    if (length % 2 === 1) return [1, 1]
    const high = bytes[length - 1]
    return high !== undefined && (high & 0xfc) === 0xd8 ? [2, 2] : [0, 0]
  }
  if (encoding === 'base64' || encoding === 'base64url') {
    const held = length % 3
    return held === 0 ? [0, 0] : [held, 3 - held]
  }
  return [0, 0]
}

/** Whether a second byte of a character in UTF-8 may follow the first. */
function isSecond(first: number, second: number): boolean {
  if (first === 0xe0) return second >= 0xa0
  if (first === 0xed) return second < 0xa0
  if (first === 0xf0) return second >= 0x90
  return first !== 0xf4 || second < 0x90
}

function decode(state: Bytes, chunk: unknown): string {
  if (typeof chunk === 'string') return chunk
  if (!ArrayBuffer.isView(chunk)) {
    throw Object.assign(new TypeError('The "buf" argument must be an instance of Buffer, TypedArray, or DataView.'), {
      code: 'ERR_INVALID_ARG_TYPE',
    })
  }
  const given = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const encoding = encodingOf(state)
  const before = state[kBufferedBytes]!
  if (before > 0 && encoding === 'utf16le') return decodeUnits(state, given, before)
  let bytes = given
  if (before > 0) {
    bytes = new Uint8Array(before + given.length)
    bytes.set(state.subarray(kIncompleteCharactersStart, before))
    bytes.set(given, before)
  }
  const [held, missing] = unfinished(bytes, encoding)
  const end = bytes.length - held
  state.set(bytes.subarray(end), kIncompleteCharactersStart)
  state[kBufferedBytes] = held
  state[kMissingBytes] = missing
  return slice(SLICES[encoding], bytes, 0, end)
}

/** What waited is a text of its own when it is complete, also if it is the first half of a pair. */
function decodeUnits(state: Bytes, given: Bytes, before: number): string {
  const missing = state[kMissingBytes]!
  const taken = given.subarray(0, missing)
  state.set(taken, before)
  state[kBufferedBytes] = before + taken.length
  state[kMissingBytes] = missing - taken.length
  if (taken.length < missing) return ''
  const first = slice('ucs2Slice', state, kIncompleteCharactersStart, before + missing)
  state[kBufferedBytes] = 0
  return first + decode(state, given.subarray(missing))
}

function flush(state: Bytes): string {
  const held = state[kBufferedBytes]!
  const encoding = encodingOf(state)
  const rest = state.slice(kIncompleteCharactersStart, held)
  state[kBufferedBytes] = 0
  state[kMissingBytes] = 0
  return held === 0 ? '' : slice(SLICES[encoding], rest, 0, encoding === 'utf16le' ? held & ~1 : held)
}

export default {
  encodings: [...ENCODINGS],
  kIncompleteCharactersStart,
  kIncompleteCharactersEnd,
  kMissingBytes,
  kBufferedBytes,
  kEncodingField,
  kNumFields,
  kSize,
  decode,
  flush,
}
