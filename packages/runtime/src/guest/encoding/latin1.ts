import { fromUnits, min, SafeList, SafeUint8Array, stringCharCodeAt, typedArrayLength } from '../primordials.ts'

/** As many arguments as `apply` takes without coming near the limit of the stack. */
const CHUNK = 4096

/** One character for each byte. */
export function latin1FromBytes(bytes: Uint8Array): string {
  const length = typedArrayLength(bytes)
  let text = ''
  for (let start = 0; start < length; start += CHUNK) {
    const end = min(start + CHUNK, length)
    const units = new SafeList<number>()
    for (let index = start; index < end; index++) units[index - start] = bytes[index]!
    text += fromUnits(units)
  }
  return text
}

/** One byte for each character; what is above U+00FF loses its upper bits. */
export function bytesFromLatin1(text: string): Uint8Array<ArrayBuffer> {
  const bytes = new SafeUint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = stringCharCodeAt(text, index)
  return bytes
}
