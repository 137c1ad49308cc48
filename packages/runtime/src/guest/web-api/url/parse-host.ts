import {
  floor,
  type List,
  numberIsNaN,
  numberToString,
  parseInteger,
  regExpExec,
  SafeList,
  stringEndsWith,
  stringIndexOf,
  stringSlice,
  stringSplit,
  stringStartsWith,
} from '../../language/primordials.ts'
import { matches } from '../../language/values.ts'
import { domainToAscii } from './domain.ts'
import { C0_SET, percentDecode, percentEncode } from './percent-encoding.ts'

const FORBIDDEN_HOST = /[\0\t\n\r #/:<>?@[\\\]^|]/
const FORBIDDEN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/
const DECIMAL = /^\d+$/
const OCTAL = /^[0-7]+$/
const HEX = /^0x[\da-f]*$/i
const IPV6_PIECE = /^[\da-f]{1,4}$/i
const DOTTED = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/

/**
 * Parses the host of a URL and gives it in serialised form.
 * @param opaque whether the URL's scheme is not a special one, so that the host is kept as it is
 * @returns undefined if it is not valid
 */
export function parseHost(text: string, opaque: boolean): string | undefined {
  if (stringStartsWith(text, '[')) {
    const address = stringEndsWith(text, ']') ? parseIpv6(stringSlice(text, 1, -1)) : undefined
    return address === undefined ? undefined : `[${serializeIpv6(address)}]`
  }
  if (opaque) return matches(text, FORBIDDEN_HOST) ? undefined : percentEncode(text, C0_SET)
  const domain = domainToAscii(percentDecode(text))
  if (domain === undefined || domain === '' || matches(domain, FORBIDDEN_DOMAIN)) return undefined
  const parts = partsOf(domain)
  return endsInNumber(parts) ? parseIpv4(parts) : domain
}

/** The parts between the dots; a dot at the end makes none of its own. */
function partsOf(domain: string): readonly string[] {
  const parts = stringSplit(domain, '.')
  if (parts.length > 1 && parts[parts.length - 1] === '') parts.length--
  return parts
}

function endsInNumber(parts: readonly string[]): boolean {
  const last = parts[parts.length - 1]!
  return matches(last, DECIMAL) || matches(last, HEX)
}

function parseIpv4(parts: readonly string[]): string | undefined {
  const count = parts.length
  if (count > 4) return undefined
  let address = 0
  for (let index = 0; index < count; index++) {
    const number = parseIpv4Number(parts[index]!)
    const isLast = index === count - 1
    if (numberIsNaN(number) || number >= (isLast ? 256 ** (5 - count) : 256)) return undefined
    address += isLast ? number : number * 256 ** (3 - index)
  }
  const byte = (shift: number): number => floor(address / 2 ** shift) % 256
  return `${byte(24)}.${byte(16)}.${byte(8)}.${byte(0)}`
}

function parseIpv4Number(part: string): number {
  if (matches(part, HEX)) return part.length === 2 ? 0 : parseInteger(stringSlice(part, 2), 16)
  if (part.length > 1 && stringStartsWith(part, '0')) return matches(part, OCTAL) ? parseInteger(part, 8) : NaN
  return matches(part, DECIMAL) ? parseInteger(part, 10) : NaN
}

function parseIpv6(text: string): List<number> | undefined {
  const halves = stringSplit(text, '::')
  if (halves.length > 2) return undefined
  const hasGap = halves.length === 2
  const pieces = parsePieces(halves[0]!, !hasGap)
  const tail = hasGap ? parsePieces(halves[1]!, true) : new SafeList<number>()
  if (pieces === undefined || tail === undefined) return undefined
  const missing = 8 - pieces.length - tail.length
  if (hasGap ? missing < 1 : missing !== 0) return undefined
  for (let index = 0; index < missing; index++) pieces[pieces.length] = 0
  for (let index = 0; index < tail.length; index++) pieces[pieces.length] = tail[index]!
  return pieces
}

/** @param isEnd whether the pieces end the address, where an IPv4 address may stand */
function parsePieces(text: string, isEnd: boolean): List<number> | undefined {
  const pieces = new SafeList<number>()
  if (text === '') return pieces
  const parts = stringSplit(text, ':')
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index]!
    if (isEnd && index === parts.length - 1 && stringIndexOf(part, '.') !== -1) {
      if (!addDotted(pieces, part)) return undefined
    } else if (matches(part, IPV6_PIECE)) {
      pieces[pieces.length] = parseInteger(part, 16)
    } else {
      return undefined
    }
  }
  return pieces
}

/** Adds an IPv4 address as two pieces. @returns false if it is not valid */
function addDotted(pieces: List<number>, part: string): boolean {
  const match = regExpExec(DOTTED, part)
  if (match === null) return false
  for (let index = 1; index <= 4; index++) {
    const number = match[index]!
    if (+number > 255 || (number.length > 1 && stringStartsWith(number, '0'))) return false
  }
  pieces[pieces.length] = +match[1]! * 256 + +match[2]!
  pieces[pieces.length] = +match[3]! * 256 + +match[4]!
  return true
}

function serializeIpv6(pieces: List<number>): string {
  let best = -1
  let bestLength = 1
  for (let start = 0; start < 8; start++) {
    let end = start
    while (end < 8 && pieces[end] === 0) end++
    if (end - start > bestLength) {
      best = start
      bestLength = end - start
    }
  }
  return best === -1 ? hexPieces(pieces, 0, 8) : `${hexPieces(pieces, 0, best)}::${hexPieces(pieces, best + bestLength, 8)}`
}

function hexPieces(pieces: List<number>, from: number, to: number): string {
  let text = ''
  for (let index = from; index < to; index++) text += `${index === from ? '' : ':'}${numberToString(pieces[index]!, 16)}`
  return text
}
