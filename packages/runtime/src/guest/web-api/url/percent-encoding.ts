import {
  arrayJoin,
  bytesPart,
  decodeComponent,
  encodeComponent,
  type List,
  numberToString,
  parseInteger,
  SafeList,
  SafeRegExp,
  SafeUint8Array,
  stringCharCodeAt,
  stringIndexOf,
  stringReplaceAll,
  stringSlice,
  stringSplit,
  stringToUpperCase,
  stringToWellFormed,
} from '../../language/primordials.ts'
import { matches, replaceMatches } from '../../language/values.ts'
import { decodeUtf8 } from '../encoding.ts'
import type { Pair } from '../pairs.ts'

const encodeSet = (characters: string): RegExp =>
  new SafeRegExp(`[\\ud800-\\udbff][\\udc00-\\udfff]|[\\0-\\x1f\\x7f-\\uffff${characters}]`, 'g')

/** The percent-encode sets of the URL standard. */
export const C0_SET = encodeSet('')
export const FRAGMENT_SET = encodeSet(' "<>`')
export const QUERY_SET = encodeSet(' "#<>')
export const SPECIAL_QUERY_SET = encodeSet(` "#<>'`)
export const PATH_SET = encodeSet(' "#<>?^`{}')
export const USERINFO_SET = encodeSet(' "#<>?^`{}/:;=@[\\\\\\]|')

const HEX_BYTE = /^[\da-f]{2}$/i

function encodeCharacter(character: string): string {
  const unit = stringCharCodeAt(character, 0)
  return unit > 0x7f ? encodeComponent(stringToWellFormed(character)) : percentByte(unit)
}

/** One byte as a percent sign and two digits. */
export function percentByte(byte: number): string {
  return `%${byte < 0x10 ? '0' : ''}${stringToUpperCase(numberToString(byte, 16))}`
}

/** Percent-encodes the UTF-8 bytes of the characters that are in the set. */
export function percentEncode(text: string, set: RegExp): string {
  return replaceMatches(text, set, encodeCharacter)
}

/** Decodes percent-encoded bytes and reads the whole as UTF-8; a `%` without two digits stays. */
export function percentDecode(text: string): string {
  if (stringIndexOf(text, '%') === -1) return stringToWellFormed(text)
  try {
    return decodeComponent(text)
  } catch {
    // It has a lone "%" or bytes that are not UTF-8.
    const encoded = stringReplaceAll(encodeComponent(stringToWellFormed(text)), '%25', '%')
    const bytes = new SafeUint8Array(encoded.length)
    let length = 0
    for (let index = 0; index < encoded.length; index++) {
      const unit = stringCharCodeAt(encoded, index)
      const hex = unit === 0x25 ? stringSlice(encoded, index + 1, index + 3) : ''
      const isByte = matches(hex, HEX_BYTE)
      bytes[length++] = isByte ? parseInteger(hex, 16) : unit
      if (isByte) index += 2
    }
    return decodeUtf8(bytesPart(bytes, 0, length))
  }
}

const UNCHANGED = /^[\w*.-]*$/
/** What encodeURIComponent leaves as it is, but not this format. */
const LEFT_OVER = /[!'()~]/g

/** Parses `application/x-www-form-urlencoded`. */
export function parseForm(text: string): List<Pair> {
  const pairs = new SafeList<Pair>()
  const parts = stringSplit(text, '&')
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]!
    if (part === '') continue
    const equals = stringIndexOf(part, '=')
    const name = equals === -1 ? part : stringSlice(part, 0, equals)
    pairs[pairs.length] = [decode(name), equals === -1 ? '' : decode(stringSlice(part, equals + 1))]
  }
  return pairs
}

export function serializeForm(pairs: List<Pair>): string {
  let text = ''
  for (let index = 0; index < pairs.length; index++) {
    const pair = pairs[index]!
    text += `${index === 0 ? '' : '&'}${encode(pair[0])}=${encode(pair[1])}`
  }
  return text
}

function decode(text: string): string {
  return percentDecode(stringIndexOf(text, '+') === -1 ? text : arrayJoin(stringSplit(text, '+'), ' '))
}

function encode(text: string): string {
  if (matches(text, UNCHANGED)) return text
  const encoded = stringReplaceAll(encodeComponent(stringToWellFormed(text)), '%20', '+')
  return replaceMatches(encoded, LEFT_OVER, (character) => percentByte(stringCharCodeAt(character, 0)))
}
