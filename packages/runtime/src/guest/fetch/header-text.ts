import { regExpExec, SafeMap, SafeTypeError, stringCharCodeAt, stringSlice, stringToLowerCase } from '../primordials.ts'
import { toText } from '../to-text.ts'

const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/
/** What a value may not have, and white space at its ends. */
const UNUSUAL = /[\0\n\r]|[^\0-\xff]|^[\t ]|[\t ]$/
const NAMES_MAX = 256

const known = new SafeMap<string, string>()

/** Checks a header name and gives it in lower case. @throws TypeError */
export function headerName(name: unknown): string {
  const text = toText(name)
  const seen = known.get(text)
  if (seen !== undefined) return seen
  if (regExpExec(TOKEN, text) === null) throw new SafeTypeError(`${shown(text)} is no header name.`)
  const lower = stringToLowerCase(text)
  // Most functions use the same few names again and again.
  if (known.size < NAMES_MAX) known.set(text, lower)
  return lower
}

/** Checks a header value and strips white space at its ends. @throws TypeError */
export function headerValue(value: unknown, name: string): string {
  const text = toText(value)
  if (regExpExec(UNUSUAL, text) === null) return text
  let start = 0
  let end = text.length
  while (start < end && isSpace(stringCharCodeAt(text, start))) start++
  while (end > start && isSpace(stringCharCodeAt(text, end - 1))) end--
  const stripped = stringSlice(text, start, end)
  if (regExpExec(/[\0\n\r]|[^\0-\xff]/, stripped) === null) return stripped
  throw new SafeTypeError(`The value of the header ${name} has a line break, a zero or a character above U+00FF.`)
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x09 || unit === 0x0a || unit === 0x0d
}

function shown(text: string): string {
  return `"${text.length > 100 ? `${stringSlice(text, 0, 100)}…` : text}"`
}
