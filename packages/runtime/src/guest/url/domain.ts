import { decodePunycode, encodePunycode } from './punycode.ts'

/** Characters that UTS #46 maps to nothing. */
const IGNORED = /\xad|\u034f|[\u180b-\u180f]|\u200b|\u2060|\u2064|[\ufe00-\ufe0f]|\ufeff/g
/** Characters that no label may have: unassigned, private and control ones, and some that only set direction. */
const DISALLOWED = /[\p{Cc}\p{Cn}\p{Co}\p{Cs}\u200e\u200f\u202a-\u202e\u2061-\u2063\u2066-\u206f\ufff9-\ufffd]/u

/** Joiners where the context rules of IDNA do not allow them: after no virama, and for U+200C not between Arabic letters. */
const VIRAMA =
  '[\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d3b\\u0d3c\\u0d4d\\u0dca\\u0e3a\\u0eba\\u0f84\\u1039\\u103a\\u17d2\\u1a60\\u1b44\\ua806\\ua8c4\\ua953\\uaaf6\\uabed]'
const ARABIC = '\\p{Script=Arabic}'
const STRAY_JOINER = new RegExp(`(?<!${VIRAMA})\\u200d|(?<!${VIRAMA})\\u200c(?!(?<=${ARABIC}\\u200c)${ARABIC})`, 'u')

/**
 * "Domain to ASCII" of the URL standard, which takes a domain of ASCII as it is. The mapping of others is NFKC with case folding in
 * place of the tables of UTS #46, which are bigger than all the rest of this runtime; the two agree on what can be registered.
 * @returns undefined if the domain is not valid
 */
export function domainToAscii(domain: string): string | undefined {
  if (isAscii(domain)) return domain.toLowerCase()
  const labels = map(domain)
    .split('.')
    .map((label) => labelToAscii(label))
  return labels.includes(undefined) ? undefined : labels.join('.')
}

function isAscii(text: string): boolean {
  return !/[^\0-\x7f]/.test(text)
}

function map(domain: string): string {
  const folded = domain.replace(IGNORED, '').normalize('NFKC').toLowerCase()
  // Folding can give sequences that compose, and NFKC characters that are ignored.
  return folded
    .normalize('NFKC')
    .replace(IGNORED, '')
    .replace(/[\u3002\uff0e\uff61]/g, '.')
}

function labelToAscii(label: string): string | undefined {
  if (!label.startsWith('xn--')) {
    if (isAscii(label)) return label
    return isValid(label) ? `xn--${encodePunycode(label)}` : undefined
  }
  const decoded = isAscii(label) ? decodePunycode(label.slice(4)) : undefined
  const valid = decoded !== undefined && !isAscii(decoded) && isValid(decoded) && map(decoded) === decoded
  return valid ? label : undefined
}

function isValid(label: string): boolean {
  return !DISALLOWED.test(label) && !STRAY_JOINER.test(label) && !/^\p{M}/u.test(label) && label.normalize('NFC') === label
}
