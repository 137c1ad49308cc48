import { regExpExec, stringSlice } from './primordials.ts'

/** Whether a pattern is found in a text; unlike `test` this asks no `exec` that user code may have put there. The pattern must not be global. */
export function matches(text: string, pattern: RegExp): boolean {
  return regExpExec(pattern, text) !== null
}

/** Replaces each match of a global pattern that matches no empty text. `replace` must not use the same pattern. */
export function replaceMatches(text: string, pattern: RegExp, replace: (match: string) => string): string {
  let result = ''
  let copied = 0
  pattern.lastIndex = 0
  for (let match = regExpExec(pattern, text); match !== null; match = regExpExec(pattern, text)) {
    result += stringSlice(text, copied, match.index) + replace(match[0])
    copied = match.index + match[0].length
  }
  return copied === 0 ? text : result + stringSlice(text, copied)
}

/** Removes each match of a global pattern that matches no empty text. */
export function removeMatches(text: string, pattern: RegExp): string {
  return replaceMatches(text, pattern, () => '')
}
