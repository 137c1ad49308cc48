import { decodeUtf8 } from '../encoding/utf8.ts'
import { decodeComponent, stringIndexOf, stringToWellFormed } from '../primordials.ts'

const encodeSet = (characters: string): RegExp =>
  new RegExp(`[\\ud800-\\udbff][\\udc00-\\udfff]|[\\0-\\x1f\\x7f-\\uffff${characters}]`, 'g')

/** The percent-encode sets of the URL standard. */
export const C0_SET = encodeSet('')
export const FRAGMENT_SET = encodeSet(' "<>`')
export const QUERY_SET = encodeSet(' "#<>')
export const SPECIAL_QUERY_SET = encodeSet(` "#<>'`)
export const PATH_SET = encodeSet(' "#<>?^`{}')
export const USERINFO_SET = encodeSet(' "#<>?^`{}/:;=@[\\\\\\]|')

function encodeCharacter(character: string): string {
  const unit = character.charCodeAt(0)
  if (unit > 0x7f) return encodeURIComponent(character.toWellFormed())
  return `%${unit < 0x10 ? '0' : ''}${unit.toString(16).toUpperCase()}`
}

/** Percent-encodes the UTF-8 bytes of the characters that are in the set. */
export function percentEncode(text: string, set: RegExp): string {
  return text.search(set) === -1 ? text : text.replace(set, encodeCharacter)
}

/** Decodes percent-encoded bytes and reads the whole as UTF-8; a `%` without two digits stays. */
export function percentDecode(text: string): string {
  if (stringIndexOf(text, '%') === -1) return stringToWellFormed(text)
  try {
    return decodeComponent(text)
  } catch {
    // It has a lone "%" or bytes that are not UTF-8.
    const encoded = encodeURIComponent(text.toWellFormed()).replaceAll('%25', '%')
    const bytes: number[] = []
    for (let index = 0; index < encoded.length; index++) {
      const hex = encoded[index] === '%' ? encoded.slice(index + 1, index + 3) : ''
      if (/^[\da-f]{2}$/i.test(hex)) {
        bytes.push(Number.parseInt(hex, 16))
        index += 2
      } else {
        bytes.push(encoded.charCodeAt(index))
      }
    }
    return decodeUtf8(new Uint8Array(bytes))
  }
}
