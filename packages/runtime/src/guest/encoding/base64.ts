import { DOMException } from '../errors/dom-exception.ts'
import { bytesFromBase64, bytesToBase64, regExpExec, SafeTypeError } from '../primordials.ts'
import { bytesFromLatin1, latin1FromBytes } from './latin1.ts'
import { toText } from '../to-text.ts'

/** One character for each byte, to base64. */
export function base64FromLatin1(text: string): string {
  return bytesToBase64(bytesFromLatin1(text))
}

/** Base64, with or without padding, to one character for each byte. @throws SyntaxError */
export function latin1FromBase64(text: string): string {
  return latin1FromBytes(bytesFromBase64(text))
}

export function btoa(...args: unknown[]): string {
  if (args.length === 0) throw new SafeTypeError('btoa needs an argument.')
  const text = toText(args[0])
  if (regExpExec(/[^\0-\xff]/, text) !== null) {
    throw new DOMException('btoa takes characters up to U+00FF only.', 'InvalidCharacterError')
  }
  return base64FromLatin1(text)
}

export function atob(...args: unknown[]): string {
  if (args.length === 0) throw new SafeTypeError('atob needs an argument.')
  try {
    return latin1FromBase64(toText(args[0]))
  } catch (error) {
    if (typeof args[0] === 'symbol') throw error
    throw new DOMException('The text is not valid base64.', 'InvalidCharacterError')
  }
}
