import {
  arrayJoin,
  encodeComponent,
  type List,
  SafeList,
  stringCharCodeAt,
  stringIndexOf,
  stringReplaceAll,
  stringSlice,
  stringSplit,
  stringToWellFormed,
} from '../primordials.ts'
import type { Pair } from '../pair-list.ts'
import { matches, replaceMatches } from '../text-match.ts'
import { percentByte, percentDecode } from './percent.ts'

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
