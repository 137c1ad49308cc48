import { stripVTControlCharacters } from 'node:util'

/** More than this is no message. */
const MAX_CHARACTERS = 300

/** What another program said, as part of a sentence: on one line, short, and without what a terminal would obey. */
export function said(text: string): string {
  const words = stripVTControlCharacters(text)
    .replaceAll(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu, ' ')
    .trim()
  return words.length <= MAX_CHARACTERS ? words : `${words.slice(0, MAX_CHARACTERS)} …`
}
