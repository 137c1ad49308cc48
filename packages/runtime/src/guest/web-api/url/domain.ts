import {
  floor,
  fromCharCode,
  fromCodePoint,
  type List,
  min,
  numberIsNaN,
  parseInteger,
  SafeList,
  SafeRegExp,
  stringCharAt,
  stringCharCodeAt,
  stringCodePointAt,
  stringIndexOf,
  stringLastIndexOf,
  stringNormalize,
  stringReplaceAll,
  stringSlice,
  stringSplit,
  stringStartsWith,
  stringToLowerCase,
} from '../../language/primordials.ts'
import { matches, removeMatches } from '../../language/values.ts'

/** Characters that UTS #46 maps to nothing. */
const IGNORED = /\xad|\u034f|[\u180b-\u180f]|\u200b|\u2060|\u2064|[\ufe00-\ufe0f]|\ufeff/g
/** Characters that no label may have: unassigned, private and control ones, and some that only set direction. */
const DISALLOWED = /[\p{Cc}\p{Cn}\p{Co}\p{Cs}\u200e\u200f\u202a-\u202e\u2061-\u2063\u2066-\u206f\ufff9-\ufffd]/u

/** Joiners where the context rules of IDNA do not allow them: after no virama, and for U+200C not between Arabic letters. */
const VIRAMA =
  '[\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d3b\\u0d3c\\u0d4d\\u0dca\\u0e3a\\u0eba\\u0f84\\u1039\\u103a\\u17d2\\u1a60\\u1b44\\ua806\\ua8c4\\ua953\\uaaf6\\uabed]'
const ARABIC = '\\p{Script=Arabic}'
const STRAY_JOINER = new SafeRegExp(`(?<!${VIRAMA})\\u200d|(?<!${VIRAMA})\\u200c(?!(?<=${ARABIC}\\u200c)${ARABIC})`, 'u')
const NOT_ASCII = /[^\0-\x7f]/
const COMBINING_START = /^\p{M}/u
/** Full stops of other scripts. */
const OTHER_DOTS = ['\u3002', '\uff0e', '\uff61'] as const

/**
 * "Domain to ASCII" of the URL standard, which takes a domain of ASCII as it is. Others are mapped by NFKC with case folding. The
 * tables of UTS #46 are bigger than all the rest of this runtime; the two agree on what can be registered.
 * @returns undefined if the domain is not valid
 */
export function domainToAscii(domain: string): string | undefined {
  if (isAscii(domain)) return stringToLowerCase(domain)
  const labels = stringSplit(map(domain), '.')
  let result = ''
  for (let index = 0; index < labels.length; index++) {
    const label = labelToAscii(labels[index]!)
    if (label === undefined) return undefined
    result += index === 0 ? label : `.${label}`
  }
  return result
}

function isAscii(text: string): boolean {
  return !matches(text, NOT_ASCII)
}

function map(domain: string): string {
  const folded = stringToLowerCase(stringNormalize(removeMatches(domain, IGNORED), 'NFKC'))
  // Folding can give sequences that compose, and NFKC characters that are ignored.
  let mapped = removeMatches(stringNormalize(folded, 'NFKC'), IGNORED)
  for (let index = 0; index < OTHER_DOTS.length; index++) {
    const dot = OTHER_DOTS[index]!
    if (stringIndexOf(mapped, dot) !== -1) mapped = stringReplaceAll(mapped, dot, '.')
  }
  return mapped
}

function labelToAscii(label: string): string | undefined {
  if (!stringStartsWith(label, 'xn--')) {
    if (isAscii(label)) return label
    return isValid(label) ? `xn--${encodePunycode(label)}` : undefined
  }
  const decoded = isAscii(label) ? decodePunycode(stringSlice(label, 4)) : undefined
  const valid = decoded !== undefined && !isAscii(decoded) && isValid(decoded) && map(decoded) === decoded
  return valid ? label : undefined
}

function isValid(label: string): boolean {
  if (matches(label, DISALLOWED) || matches(label, STRAY_JOINER) || matches(label, COMBINING_START)) return false
  return stringNormalize(label, 'NFC') === label
}

const BASE = 36
const T_MIN = 1
const T_MAX = 26
const SKEW = 38
const DAMP = 700
const FIRST_N = 128
const FIRST_BIAS = 72
const INT_MAX = 0x7fffffff

function adapt(delta: number, points: number, first: boolean): number {
  let rest = first ? floor(delta / DAMP) : delta >> 1
  rest += floor(rest / points)
  let k = 0
  for (; rest > ((BASE - T_MIN) * T_MAX) >> 1; k += BASE) rest = floor(rest / (BASE - T_MIN))
  return k + floor(((BASE - T_MIN + 1) * rest) / (rest + SKEW))
}

function threshold(k: number, bias: number): number {
  return k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias
}

function digit(value: number): string {
  return fromCharCode(value < 26 ? value + 0x61 : value - 26 + 0x30)
}

function pointsOf(text: string): List<number> {
  const points = new SafeList<number>()
  for (let index = 0; index < text.length; ) {
    const point = stringCodePointAt(text, index)!
    points[points.length] = point
    index += point > 0xffff ? 2 : 1
  }
  return points
}

/** Encodes a label as RFC 3492 says, without the "xn--". */
export function encodePunycode(label: string): string {
  const points = pointsOf(label)
  let output = ''
  for (let index = 0; index < points.length; index++) {
    if (points[index]! < 0x80) output += fromCharCode(points[index]!)
  }
  const basic = output.length
  if (basic > 0) output += '-'
  let n = FIRST_N
  let delta = 0
  let bias = FIRST_BIAS
  for (let handled = basic; handled < points.length; ) {
    let next = INT_MAX
    for (let index = 0; index < points.length; index++) {
      if (points[index]! >= n) next = min(next, points[index]!)
    }
    delta += (next - n) * (handled + 1)
    n = next
    for (let index = 0; index < points.length; index++) {
      const point = points[index]!
      if (point < n) delta++
      if (point !== n) continue
      let q = delta
      for (let k = BASE; ; k += BASE) {
        const t = threshold(k, bias)
        if (q < t) break
        output += digit(t + ((q - t) % (BASE - t)))
        q = floor((q - t) / (BASE - t))
      }
      output += digit(q)
      bias = adapt(delta, handled + 1, handled === basic)
      delta = 0
      handled++
    }
    delta++
    n++
  }
  return output
}

/** Decodes what follows "xn--"; undefined if it is not valid. */
export function decodePunycode(text: string): string | undefined {
  const split = stringLastIndexOf(text, '-')
  const points = new SafeList<number>()
  for (let index = 0; index < split; index++) points[index] = stringCharCodeAt(text, index)
  let n = FIRST_N
  let i = 0
  let bias = FIRST_BIAS
  for (let index = split > 0 ? split + 1 : 0; index < text.length; ) {
    const old = i
    let weight = 1
    for (let k = BASE; ; k += BASE) {
      const value = parseInteger(stringCharAt(text, index), 36)
      index++
      if (numberIsNaN(value)) return undefined
      // Base 36 reads "0-9a-z" as 0 to 35; punycode has the letters first.
      const digitValue = value < 10 ? value + 26 : value - 10
      i += digitValue * weight
      if (i > INT_MAX) return undefined
      const t = threshold(k, bias)
      if (digitValue < t) break
      weight *= BASE - t
    }
    bias = adapt(i - old, points.length + 1, old === 0)
    n += floor(i / (points.length + 1))
    i %= points.length + 1
    if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) return undefined
    insert(points, i++, n)
  }
  let decoded = ''
  for (let index = 0; index < points.length; index++) decoded += fromCodePoint(points[index]!)
  return decoded
}

function insert(points: List<number>, at: number, point: number): void {
  for (let index = points.length; index > at; index--) points[index] = points[index - 1]!
  points[at] = point
}
