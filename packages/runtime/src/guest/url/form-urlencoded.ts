import { arrayJoin, stringIndexOf, stringSlice, stringSplit } from '../primordials.ts'
import { percentDecode } from './percent.ts'

export type Pair = [name: string, value: string]

/** Parses `application/x-www-form-urlencoded`. */
export function parseForm(text: string): Pair[] {
  const pairs: Pair[] = []
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

export function serializeForm(pairs: readonly Pair[]): string {
  return pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join('&')
}

function decode(text: string): string {
  return percentDecode(stringIndexOf(text, '+') === -1 ? text : arrayJoin(stringSplit(text, '+'), ' '))
}

function encode(text: string): string {
  if (/^[\w*.-]*$/.test(text)) return text
  return encodeURIComponent(text.toWellFormed())
    .replaceAll('%20', '+')
    .replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
}
