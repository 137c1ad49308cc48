import { BodyParts } from './body-parts.ts'

/**
 * A frame holds the messages of one turn of the event loop. On the wire, numbers little-endian:
 *
 *     u32 bytes of the list | u32 bytes of the texts | u32 bytes of the bodies | list (JSON) | texts (UTF-8) | bodies
 *
 * The list has three entries for each message: the message, the length of its text in UTF-16 units, and that of its body in
 * bytes. Texts and bodies stand behind each other in the order of the list.
 *
 * A large body may go ahead of its message in parts, in as many frames. An entry whose message is a pair of numbers is such a
 * part: the number of the body, and its bytes in all, or 0 if it is given up. The entry of its message has that number,
 * negative, for the length of the body.
 */
export interface Message<M> {
  readonly message: M
  readonly text: string
  readonly body: Uint8Array
}

/**
 * Receives one message with its attachments. The body is a view: who keeps it for longer than the turn keeps the whole chunk,
 * unless it came in parts.
 */
export type OnMessage<M> = (message: M, text: string, body: Uint8Array) => void

export const NO_BODY: Uint8Array = new Uint8Array(0)

/** Longest section that a frame may have; a peer that announces more is not speaking this protocol. */
export const MAX_SECTION_BYTES = 512 * 1024 * 1024

const HEADER_BYTES = 12
const FIRST_CAPACITY_BYTES = 64 * 1024
/** UTF-8 takes at most three bytes for each UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3
const ENTRIES_PER_MESSAGE = 3
/** Bodies of a frame, together, that are not copied into it. */
const LARGE_BYTES = 128 * 1024

/** Collects the messages of a turn into one frame, so that they leave in one write. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafeSlow(FIRST_CAPACITY_BYTES)
  #list: unknown[] = []
  #texts = ''
  #bodies: Uint8Array[] = []
  #bodyBytes = 0
  #headBytes = 0

  /** Texts and bodies that were appended and not taken yet, about in bytes. */
  get bytes(): number {
    return this.#texts.length + this.#bodyBytes
  }

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  /** Text and body must not change until {@link take}. */
  append(message: object, text: string, body: Uint8Array): void {
    this.#list.push(message, text.length, body.length)
    if (text.length > 0) this.#texts += text
    if (body.length === 0) return
    this.#bodies.push(body)
    this.#bodyBytes += body.length
  }

  /** Appends a message whose body has gone ahead under a number. */
  appendBehindParts(message: object, text: string, number: number): void {
    this.#list.push(message, text.length, -number)
    if (text.length > 0) this.#texts += text
  }

  /** Appends the next part of a body. @param totalBytes of all its parts; 0 if its message never comes */
  appendPart(number: number, totalBytes: number, part: Uint8Array): void {
    this.append([number, totalBytes], '', part)
  }

  /** Whether the bodies are so large that a copy of them costs more than to write each by itself: see {@link takeParts}. */
  get isLarge(): boolean {
    return this.#bodyBytes >= LARGE_BYTES
  }

  /** @returns what was collected, as one frame */
  take(): Buffer {
    const bodies = this.#bodies
    const buffer = this.#takeHead(this.#bodyBytes)
    let length = this.#headBytes
    for (const body of bodies) {
      buffer.set(body, length)
      length += body.length
    }
    const frame = buffer.subarray(0, length)
    return buffer === this.#buffer ? Buffer.from(frame) : frame
  }

  /**
   * The same in parts, which are to be written in this order. Copies no body, so bodies must not change until they are written: a
   * large one takes memory and time once more, and has garbage collected that much sooner.
   */
  takeParts(): Uint8Array[] {
    const bodies = this.#bodies
    const buffer = this.#takeHead(0)
    const head = buffer.subarray(0, this.#headBytes)
    return [buffer === this.#buffer ? Buffer.from(head) : head, ...bodies]
  }

  /** Writes all that stands before the bodies, {@link #headBytes} long. @param roomBytes to be left behind that */
  #takeHead(roomBytes: number): Buffer {
    const list = JSON.stringify(this.#list)
    const texts = this.#texts
    const mostBytes = HEADER_BYTES + (list.length + texts.length) * MAX_BYTES_PER_UNIT + roomBytes
    const buffer = mostBytes <= this.#buffer.length ? this.#buffer : Buffer.allocUnsafeSlow(mostBytes)
    const listBytes = buffer.write(list, HEADER_BYTES, 'utf8')
    const textBytes = texts.length === 0 ? 0 : buffer.write(texts, HEADER_BYTES + listBytes, 'utf8')
    buffer.writeUInt32LE(listBytes, 0)
    buffer.writeUInt32LE(textBytes, 4)
    buffer.writeUInt32LE(this.#bodyBytes, 8)
    this.#list = []
    this.#texts = ''
    this.#bodies = []
    this.#bodyBytes = 0
    this.#headBytes = HEADER_BYTES + listBytes + textBytes
    return buffer
  }
}

/** Cuts a byte stream back into messages, however the chunks fall. */
export class FrameReader<M> {
  readonly #maxSectionBytes: number
  readonly #parts: BodyParts
  #chunks: Buffer[] = []
  #bufferedBytes = 0
  #neededBytes = HEADER_BYTES

  constructor(maxSectionBytes: number = MAX_SECTION_BYTES) {
    this.#maxSectionBytes = maxSectionBytes
    this.#parts = new BodyParts(maxSectionBytes)
  }

  /** @throws Error if the bytes are no frames; the stream cannot be read any further then. */
  read(chunk: Buffer, onMessage: OnMessage<M>): void {
    this.#chunks.push(chunk)
    this.#bufferedBytes += chunk.length
    if (this.#bufferedBytes < this.#neededBytes) return
    const buffer = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#bufferedBytes)
    let offset = 0
    this.#neededBytes = HEADER_BYTES
    while (buffer.length - offset >= HEADER_BYTES) {
      const listBytes = buffer.readUInt32LE(offset)
      const textBytes = buffer.readUInt32LE(offset + 4)
      const bodyBytes = buffer.readUInt32LE(offset + 8)
      if (Math.max(listBytes, textBytes, bodyBytes) > this.#maxSectionBytes) throw new Error('A frame is too large to be one.')
      const listStart = offset + HEADER_BYTES
      const end = listStart + listBytes + textBytes + bodyBytes
      if (buffer.length < end) {
        this.#neededBytes = end - offset
        break
      }
      readFrame(buffer, { listStart, listBytes, textBytes, end }, this.#parts, onMessage)
      offset = end
    }
    this.#chunks = offset === buffer.length ? [] : [buffer.subarray(offset)]
    this.#bufferedBytes = buffer.length - offset
  }
}

interface FrameBounds {
  readonly listStart: number
  readonly listBytes: number
  readonly textBytes: number
  readonly end: number
}

function readFrame<M>(
  buffer: Buffer,
  { listStart, listBytes, textBytes, end }: FrameBounds,
  parts: BodyParts,
  onMessage: OnMessage<M>,
): void {
  const textStart = listStart + listBytes
  const list: unknown = JSON.parse(buffer.toString('utf8', listStart, textStart))
  if (!Array.isArray(list) || list.length % ENTRIES_PER_MESSAGE !== 0) throw new Error('The list of a frame is none.')
  const texts = textBytes === 0 ? '' : buffer.toString('utf8', textStart, textStart + textBytes)
  let textAt = 0
  let bodyAt = textStart + textBytes
  for (let index = 0; index < list.length; index += ENTRIES_PER_MESSAGE) {
    const message: unknown = list[index]
    const bodyLength: unknown = list[index + 2]
    const isBehindParts = typeof bodyLength === 'number' && bodyLength < 0
    const textEnd = textAt + lengthIn(list[index + 1])
    const bodyEnd = isBehindParts ? bodyAt : bodyAt + lengthIn(bodyLength)
    if (textEnd > texts.length || bodyEnd > end) throw new Error('A message is longer than its frame.')
    const text = textEnd === textAt ? '' : texts.slice(textAt, textEnd)
    const body = bodyEnd === bodyAt ? NO_BODY : buffer.subarray(bodyAt, bodyEnd)
    textAt = textEnd
    bodyAt = bodyEnd
    if (Array.isArray(message)) parts.add(lengthIn(message[0]), lengthIn(message[1]), body)
    else onMessage(message as M, text, isBehindParts ? parts.take(-bodyLength) : body)
  }
}

function lengthIn(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 0) return value as number
  throw new Error('The length of a message is none.')
}
