/**
 * What a terminal would obey rather than show, and what would change the order or the look of what is around it: control characters but
 * for tabs and ends of lines, marks of direction and of formatting, separators of lines, halves of surrogate pairs.
 */
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** A text that somebody else wrote, safe to print on a terminal: what cannot be seen stands there as an escape, such as `\u001b`. */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(UNSEEN, escape)
}

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, '0')}`
}
