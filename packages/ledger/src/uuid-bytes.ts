const UUID_LENGTH = 36
const HYPHEN = 0x2d
const NO_DIGIT = 0xff

/** Value of each hexadecimal digit by its character code. */
const DIGITS = new Uint8Array(128).fill(NO_DIGIT)
for (let value = 0; value < 16; value += 1) {
  const digit = value.toString(16)
  DIGITS[digit.charCodeAt(0)] = value
  DIGITS[digit.toUpperCase().charCodeAt(0)] = value
}

/** Writes the 16 bytes of a UUID. Gives false, with any bytes, if the text is none. */
export function writeUuid(uuid: string, target: Uint8Array, offset: number): boolean {
  if (uuid.length !== UUID_LENGTH) return false
  let check = 0
  let position = 0
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) {
      if (uuid.charCodeAt(position) !== HYPHEN) return false
      position += 1
    }
    const high = DIGITS[uuid.charCodeAt(position)] ?? NO_DIGIT
    const low = DIGITS[uuid.charCodeAt(position + 1)] ?? NO_DIGIT
    check |= high | low
    target[offset + index] = (high << 4) | low
    position += 2
  }
  return check < 16
}

/** The text of a UUID; of other bytes, their hexadecimal digits. */
export function readUuid(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
  if (bytes.length !== 16) return hex
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
