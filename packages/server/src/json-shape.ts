import { CarpoolError } from '@carpool/core'

/** Deeper, or with more values, than anything that the control plane takes. */
const MAX_DEPTH = 16
const MAX_VALUES = 20_000

const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b])
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d])

/** @throws CarpoolError `bad-request` if it is nested too deeply or has too many values; what is no JSON may pass */
export function checkJsonShape(json: Uint8Array, maxValues = MAX_VALUES): void {
  let depth = 0
  let values = 1
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]!
    if (byte === QUOTE) at = endOfString(json, at)
    else if (OPENING.has(byte)) {
      depth++
      values++
      if (depth > MAX_DEPTH) throw new CarpoolError('bad-request', `The body is nested more than ${MAX_DEPTH} levels deep.`)
    } else if (CLOSING.has(byte)) depth--
    else if (byte === COMMA) values++
    if (values > maxValues) throw new CarpoolError('bad-request', `The body has more than ${maxValues} values.`)
  }
}

/** Where the string ends that begins there. */
function endOfString(json: Uint8Array, start: number): number {
  let end = start
  do {
    end = json.indexOf(QUOTE, end + 1)
    if (end === -1) return json.length
  } while (isEscaped(json, end))
  return end
}

/** Whether an odd number of backslashes stands before. */
function isEscaped(json: Uint8Array, at: number): boolean {
  let backslashes = 0
  while (json[at - 1 - backslashes] === BACKSLASH) backslashes++
  return backslashes % 2 === 1
}
