import { decodeUtf8 } from '../encoding/utf8.ts'
import {
  bytesPart,
  decodeComponent,
  encodeComponent,
  numberToString,
  parseInteger,
  SafeRegExp,
  SafeUint8Array,
  stringCharCodeAt,
  stringIndexOf,
  stringReplaceAll,
  stringSlice,
  stringToUpperCase,
  stringToWellFormed,
} from '../primordials.ts'
import { matches, replaceMatches } from '../text-match.ts'

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
