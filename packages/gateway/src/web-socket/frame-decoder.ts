import { isUtf8 } from 'node:buffer'
import { checkedUtf8 } from './utf8.ts'

/** What a frame holds (RFC 6455, section 5.2). */
export const OPCODES = { continuation: 0, text: 1, bytes: 2, close: 8, ping: 9, pong: 10 } as const

/** Close codes that are ours to say or to see (RFC 6455, section 7.4.1). */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  /** Never sent: the peer's close frame had no code. */
  none: 1005,
  /** Never sent: the connection ended without a close frame. */
  abnormal: 1006,
  notText: 1007,
  policy: 1008,
  tooLarge: 1009,
  fault: 1011,
  tryAgain: 1013,
} as const

/** What a client says. Called while bytes are decoded. */
export interface FrameReceiver {
  /** A whole message; text is known to be UTF-8. The bytes are the receiver's from here on. */
  readonly message: (kind: 'text' | 'bytes', payload: Uint8Array) => void
  /** The payload must be read at once. */
  readonly ping: (payload: Uint8Array) => void
  /** Nothing comes behind it. @param code {@link CLOSE_CODES.none} if the frame has none */
  readonly closed: (code: number, reason: string) => void
  /** The client broke the protocol or a limit: nothing that comes behind is decoded. @param code to close with */
  readonly broken: (code: number, why: string) => void
}

const NO_BYTES = Buffer.alloc(0)
/** Most bytes of the payload of a control frame. */
export const MAX_CONTROL_BYTES = 125
/** Longest payload whose length is in the second byte. */
const MAX_SHORT = 125
/** First size of a buffer that pieces of a message are copied into. */
const MIN_CAPACITY_BYTES = 1024
/** Once this share of a frame has come, there is memory for all of it: what was announced alone may never come. */
const TRUSTED_SHARE = 0.25
/** Most bytes of a payload that one step takes. */
const STEP_BYTES = 64 * 1024
/** The longest head of a frame: two bytes, eight of the length, four of the mask. */
const MAX_HEAD_BYTES = 14

/**
 * Decodes what a client sends over a WebSocket (RFC 6455, section 5), a frame or a piece of one at a time, so that whoever calls
 * decides how long it takes. Of a message that has not come as a whole it holds at most twice the bytes, for pieces are copied
 * together: kept as they came, a message in pieces of a byte would take hundreds of times its size.
 */
export class FrameDecoder {
  readonly #receiver: FrameReceiver
  readonly #maxMessageBytes: number
  /** What came last, */
  #chunk: Buffer = NO_BYTES
  /** and up to where it is decoded. */
  #at = 0
  readonly #head = Buffer.alloc(MAX_HEAD_BYTES)
  #headBytes = 0
  /** How long the present head is; known with its second byte. */
  #headLength = 2
  #isInPayload = false
  #isFinal = false
  #opcode = 0
  /** What is to come of the payload of the present frame. */
  #leftBytes = 0
  /** Where the mask lies in the head, */
  #maskAt = 0
  /** and which of its bytes is next. */
  #maskTurn = 0
  /** Opcode of the message of which a frame has come but not the last; 0: none. */
  #unfinished = 0
  #message: Buffer = NO_BYTES
  #messageBytes = 0
  /** Up to where a text is known to be UTF-8. */
  #checkedBytes = 0
  readonly #control = Buffer.alloc(MAX_CONTROL_BYTES)
  #controlBytes = 0

  constructor(receiver: FrameReceiver, maxMessageBytes: number) {
    this.#receiver = receiver
    this.#maxMessageBytes = maxMessageBytes
  }

  /** What it has in memory, in bytes. */
  get heldBytes(): number {
    return this.#chunk.length + this.#message.length
  }

  /** Whether something that came is still to be decoded. */
  get isBusy(): boolean {
    return this.#at < this.#chunk.length
  }

  /** Takes what came, once all that came before is decoded. It is unmasked in place. */
  push(chunk: Buffer): void {
    this.#chunk = chunk
    this.#at = 0
  }

  /** Decodes a frame, or a piece of one. */
  step(): void {
    if (this.#isInPayload || this.#readHead()) this.#readPayload()
    if (!this.isBusy) this.#chunk = NO_BYTES
  }

  /** Forgets what it has: nothing more is decoded. */
  stop(): void {
    this.#chunk = NO_BYTES
    this.#message = NO_BYTES
  }

  #break(code: number, why: string): false {
    this.stop()
    this.#receiver.broken(code, why)
    return false
  }

  /** @returns whether the head is whole, and allowed */
  #readHead(): boolean {
    const chunk = this.#chunk
    const head = this.#head
    while (this.#at < chunk.length) {
      head[this.#headBytes++] = chunk[this.#at++]!
      // What is wrong is said before the rest has come.
      if (this.#headBytes === 2 && !this.#checkHead(head[0]!, head[1]!)) return false
      if (this.#headBytes === this.#headLength) return this.#beginPayload()
    }
    return false
  }

  #checkHead(first: number, second: number): boolean {
    const opcode = first & 0x0f
    const length = second & 0x7f
    this.#isFinal = first >= 0x80
    if ((first & 0x70) !== 0) return this.#break(CLOSE_CODES.protocolError, 'A reserved bit of a frame is set.')
    if (second < 0x80) return this.#break(CLOSE_CODES.protocolError, 'A frame is not masked.')
    if (opcode >= OPCODES.close) {
      if (opcode > OPCODES.pong) return this.#break(CLOSE_CODES.protocolError, `There is no opcode ${opcode}.`)
      if (!this.#isFinal) return this.#break(CLOSE_CODES.protocolError, 'A control frame is fragmented.')
      if (length > MAX_CONTROL_BYTES) return this.#break(CLOSE_CODES.protocolError, 'A control frame is too long.')
    } else if (opcode > OPCODES.bytes) return this.#break(CLOSE_CODES.protocolError, `There is no opcode ${opcode}.`)
    else if (opcode === OPCODES.continuation) {
      if (this.#unfinished === 0)
        return this.#break(CLOSE_CODES.protocolError, 'A frame goes on with a message that never began.')
    } else if (this.#unfinished !== 0) return this.#break(CLOSE_CODES.protocolError, 'A message begins within another one.')
    this.#opcode = opcode
    this.#headLength = length === 127 ? 14 : length === 126 ? 8 : 6
    return true
  }

  #beginPayload(): boolean {
    const head = this.#head
    const length = lengthIn(head)
    this.#headBytes = 0
    this.#headLength = 2
    if (length < 0) return this.#break(CLOSE_CODES.protocolError, 'The length of a frame is not written in the shortest form.')
    this.#leftBytes = length
    this.#maskAt = length > 0xffff ? 10 : length > MAX_SHORT ? 4 : 2
    if (this.#opcode < OPCODES.close) {
      const bytes = this.#messageBytes + length
      if (bytes > this.#maxMessageBytes) {
        return this.#break(CLOSE_CODES.tooLarge, `The limit for a message is ${this.#maxMessageBytes} bytes.`)
      }
      if (this.#opcode !== OPCODES.continuation) this.#unfinished = this.#opcode
    }
    this.#maskTurn = 0
    this.#isInPayload = true
    return true
  }

  #readPayload(): void {
    const piece = this.#chunk.subarray(this.#at, this.#at + Math.min(this.#leftBytes, STEP_BYTES))
    this.#unmask(piece)
    this.#at += piece.length
    this.#leftBytes -= piece.length
    this.#isInPayload = this.#leftBytes > 0
    if (this.#opcode >= OPCODES.close) this.#readControl(piece)
    // Most messages are one frame that lies in one chunk: they are not copied.
    else if (this.#isFinal && this.#messageBytes === 0 && !this.#isInPayload) this.#endMessage(piece, 0)
    else this.#readPiece(piece)
  }

  #unmask(bytes: Buffer): void {
    const mask = this.#head
    const base = this.#maskAt
    const turn = this.#maskTurn
    this.#maskTurn = (turn + bytes.length) & 3
    const one = mask[base + turn]!
    const two = mask[base + ((turn + 1) & 3)]!
    const three = mask[base + ((turn + 2) & 3)]!
    const four = mask[base + ((turn + 3) & 3)]!
    const { length } = bytes
    let index = 0
    for (; index + 3 < length; index += 4) {
      bytes[index]! ^= one
      bytes[index + 1]! ^= two
      bytes[index + 2]! ^= three
      bytes[index + 3]! ^= four
    }
    if (index < length) bytes[index]! ^= one
    if (index + 1 < length) bytes[index + 1]! ^= two
    if (index + 2 < length) bytes[index + 2]! ^= three
  }

  #readPiece(piece: Buffer): void {
    const bytes = this.#messageBytes + piece.length
    if (bytes > this.#message.length) this.#grow(bytes)
    this.#message.set(piece, this.#messageBytes)
    this.#messageBytes = bytes
    if (this.#isFinal && !this.#isInPayload) return this.#endMessage(this.#message.subarray(0, bytes), this.#checkedBytes)
    if (this.#unfinished !== OPCODES.text) return
    this.#checkedBytes = checkedUtf8(this.#message, this.#checkedBytes, bytes)
    if (this.#checkedBytes < 0) this.#break(CLOSE_CODES.notText, 'A text is not UTF-8.')
  }

  #grow(neededBytes: number): void {
    const announcedBytes = neededBytes + this.#leftBytes
    const isLikely = neededBytes >= announcedBytes * TRUSTED_SHARE
    const wantedBytes = isLikely && this.#leftBytes > 0 ? announcedBytes : neededBytes * 2
    const larger = Buffer.allocUnsafeSlow(Math.min(this.#maxMessageBytes, Math.max(wantedBytes, MIN_CAPACITY_BYTES)))
    larger.set(this.#message.subarray(0, this.#messageBytes))
    this.#message = larger
  }

  #endMessage(payload: Buffer, checkedBytes: number): void {
    const kind = this.#unfinished === OPCODES.text ? 'text' : 'bytes'
    this.#unfinished = 0
    this.#message = NO_BYTES
    this.#messageBytes = 0
    this.#checkedBytes = 0
    if (kind === 'text' && !isUtf8(checkedBytes === 0 ? payload : payload.subarray(checkedBytes))) {
      return void this.#break(CLOSE_CODES.notText, 'A text is not UTF-8.')
    }
    this.#receiver.message(kind, payload)
  }

  #readControl(piece: Buffer): void {
    this.#control.set(piece, this.#controlBytes)
    this.#controlBytes += piece.length
    if (this.#isInPayload) return
    const payload = this.#control.subarray(0, this.#controlBytes)
    this.#controlBytes = 0
    if (this.#opcode === OPCODES.ping) return this.#receiver.ping(payload)
    if (this.#opcode === OPCODES.close) this.#readClose(payload)
  }

  #readClose(payload: Buffer): void {
    // Nothing comes behind it.
    this.stop()
    if (payload.length === 0) return this.#receiver.closed(CLOSE_CODES.none, '')
    if (payload.length === 1) return void this.#break(CLOSE_CODES.protocolError, 'A close code has two bytes.')
    const code = payload.readUInt16BE(0)
    const reason = payload.subarray(2)
    if (!isCloseCode(code)) return void this.#break(CLOSE_CODES.protocolError, `${code} is no close code.`)
    if (!isUtf8(reason)) return void this.#break(CLOSE_CODES.notText, 'The reason of a close is not UTF-8.')
    this.#receiver.closed(code, reason.toString())
  }
}

/** The length of the payload, which the shortest form must say; -1 if another one does. */
function lengthIn(head: Buffer): number {
  const short = head[1]! & 0x7f
  if (short < 126) return short
  if (short === 126) {
    const length = head.readUInt16BE(2)
    return length > MAX_SHORT ? length : -1
  }
  const high = head.readUInt32BE(2)
  const length = high * 2 ** 32 + head.readUInt32BE(6)
  return length > 0xffff && high < 2 ** 31 ? length : -1
}

/** Whether a close frame may have the code (RFC 6455, section 7.4, and the registry of IANA). */
export function isCloseCode(code: number): boolean {
  if (code >= 3000) return code <= 4999
  return code >= 1000 && code <= 1014 && code !== 1004 && code !== CLOSE_CODES.none && code !== CLOSE_CODES.abnormal
}
