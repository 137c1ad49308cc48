import { isCloseCode, MAX_CONTROL_BYTES, OPCODES } from './frame-decoder.ts'

/** A larger payload is not copied into one buffer with its head. */
const MAX_JOINED_BYTES = 16 * 1024

/** A frame of ours: a server does not mask (RFC 6455, section 5.1). One buffer, or head and payload. */
export function frameOf(opcode: number, payload: Uint8Array, isFinal = true): Buffer[] {
  const { length } = payload
  const headBytes = length > 0xffff ? 10 : length > 125 ? 4 : 2
  const isJoined = length <= MAX_JOINED_BYTES
  const frame = Buffer.allocUnsafe(isJoined ? headBytes + length : headBytes)
  frame[0] = (isFinal ? 0x80 : 0) | opcode
  if (headBytes === 2) frame[1] = length
  else if (headBytes === 4) {
    frame[1] = 126
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = 127
    frame.writeUInt32BE(Math.floor(length / 2 ** 32), 2)
    frame.writeUInt32BE(length % 2 ** 32, 6)
  }
  if (!isJoined) return [frame, unshared(payload)]
  frame.set(payload, headBytes)
  return [frame]
}

/** @param code one that may not be sent gives a frame without code */
export function closeFrame(code: number, reason: string): Buffer[] {
  if (!isCloseCode(code)) return frameOf(OPCODES.close, Buffer.alloc(0))
  const payload = Buffer.alloc(MAX_CONTROL_BYTES)
  payload.writeUInt16BE(code)
  // Writes no part of a character that does not fit.
  const reasonBytes = payload.write(reason, 2, 'utf8')
  return frameOf(OPCODES.close, payload.subarray(0, 2 + reasonBytes))
}

/** A view of a much larger frame of a host would keep that. */
function unshared(payload: Uint8Array): Buffer {
  const view = Buffer.from(payload.buffer, payload.byteOffset, payload.length)
  return payload.length * 4 < payload.buffer.byteLength ? Buffer.from(view) : view
}
