import { isUtf8 } from 'node:buffer'

/**
 * Checks text that comes in pieces, so that what is no UTF-8 is found when it comes and not when its message is whole.
 * @param from up to where it was checked before
 * @returns up to where it is known to be UTF-8: the end, or where the last character begins if that goes on; -1 if it is none,
 * whatever comes
 */
export function checkedUtf8(bytes: Uint8Array, from: number, end: number): number {
  const boundary = lastBoundary(bytes, from, end)
  if (boundary > from && !isUtf8(bytes.subarray(from, boundary))) return -1
  return boundary === end || mayGoOn(bytes, boundary, end) ? boundary : -1
}

/** Where the last character begins, if it is not whole; else the end. */
function lastBoundary(bytes: Uint8Array, from: number, end: number): number {
  for (let index = end - 1; index >= from && index >= end - 3; index--) {
    const byte = bytes[index] ?? 0
    if (isContinuation(byte)) continue
    return index + lengthOf(byte) > end ? index : end
  }
  return end
}

/** How many bytes a character has that begins so. */
function lengthOf(lead: number): number {
  if (lead < 0xc0) return 1
  if (lead < 0xe0) return 2
  return lead < 0xf0 ? 3 : 4
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80
}

/** Whether the beginning of a character can become one: no overlong form, no surrogate, nothing above U+10FFFF. */
function mayGoOn(bytes: Uint8Array, start: number, end: number): boolean {
  const lead = bytes[start] ?? 0
  if (lead < 0xc2 || lead > 0xf4) return false
  if (start + 1 === end) return true
  const second = bytes[start + 1] ?? 0
  if (lead === 0xe0) return second >= 0xa0
  if (lead === 0xed) return second <= 0x9f
  if (lead === 0xf0) return second >= 0x90
  if (lead === 0xf4) return second <= 0x8f
  return true
}
