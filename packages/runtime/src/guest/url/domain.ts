import {
  SafeRegExp,
  stringIndexOf,
  stringNormalize,
  stringReplaceAll,
  stringSlice,
  stringSplit,
  stringStartsWith,
  stringToLowerCase,
} from '../primordials.ts'
import { matches, removeMatches } from '../text-match.ts'
import { decodePunycode, encodePunycode } from './punycode.ts'

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
 * "Domain to ASCII" of the URL standard, which takes a domain of ASCII as it is. The mapping of others is NFKC with case folding in
 * place of the tables of UTS #46, which are bigger than all the rest of this runtime; the two agree on what can be registered.
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
