/**
 * A frame on the wire, numbers little-endian:
 *
 *     u32 bytes of the message | u32 bytes of the text | u32 bytes of the body | message (JSON) | text (UTF-8) | body
 */
export interface Frame<Message> {
  readonly message: Message
  readonly text: string
  readonly body: Uint8Array
}

export const NO_BODY: Uint8Array = new Uint8Array(0)

/** Longest section that a frame may have; a peer that announces more is not speaking this protocol. */
export const MAX_SECTION_BYTES = 512 * 1024 * 1024

const HEADER_BYTES = 12
const FIRST_CAPACITY_BYTES = 64 * 1024
/** UTF-8 takes at most three bytes for each UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3

/** Collects frames into one buffer, so that all frames of a turn of the event loop leave in one write. */
export class FrameWriter {
  #buffer = Buffer.allocUnsafeSlow(FIRST_CAPACITY_BYTES)
  #length = 0

  /** What was appended and not taken yet. */
  get bytes(): number {
    return this.#length
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  append(message: object, text: string, body: Uint8Array): void {
    const json = JSON.stringify(message)
    this.#reserve(HEADER_BYTES + (json.length + text.length) * MAX_BYTES_PER_UNIT + body.length)
    const start = this.#length
    const jsonStart = start + HEADER_BYTES
    const jsonBytes = this.#buffer.write(json, jsonStart, 'utf8')
    const textBytes = text.length === 0 ? 0 : this.#buffer.write(text, jsonStart + jsonBytes, 'utf8')
    this.#buffer.writeUInt32LE(jsonBytes, start)
    this.#buffer.writeUInt32LE(textBytes, start + 4)
    this.#buffer.writeUInt32LE(body.length, start + 8)
    const bodyStart = jsonStart + jsonBytes + textBytes
    this.#buffer.set(body, bodyStart)
    this.#length = bodyStart + body.length
  }

  /** Takes out what was collected. */
  take(): Buffer {
    if (this.#buffer.length > FIRST_CAPACITY_BYTES) {
      const taken = this.#buffer.subarray(0, this.#length)
      this.#buffer = Buffer.allocUnsafeSlow(FIRST_CAPACITY_BYTES)
      this.#length = 0
      return taken
    }
    const taken = Buffer.from(this.#buffer.subarray(0, this.#length))
    this.#length = 0
    return taken
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

/** Cuts a byte stream back into frames, however the chunks fall. */
export class FrameReader<Message> {
  readonly #maxSectionBytes: number
  #chunks: Buffer[] = []
  #bufferedBytes = 0
  #neededBytes = HEADER_BYTES

  constructor(maxSectionBytes: number = MAX_SECTION_BYTES) {
    this.#maxSectionBytes = maxSectionBytes
  }

  /** @throws Error if the bytes are no frames; the stream cannot be read any further then. */
  *read(chunk: Buffer): Generator<Frame<Message>> {
    this.#chunks.push(chunk)
    this.#bufferedBytes += chunk.length
    if (this.#bufferedBytes < this.#neededBytes) return
    const buffer = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#bufferedBytes)
    let offset = 0
    this.#neededBytes = HEADER_BYTES
    while (buffer.length - offset >= HEADER_BYTES) {
      const messageBytes = buffer.readUInt32LE(offset)
      const textBytes = buffer.readUInt32LE(offset + 4)
      const bodyBytes = buffer.readUInt32LE(offset + 8)
      if (Math.max(messageBytes, textBytes, bodyBytes) > this.#maxSectionBytes) throw new Error('A frame is too large to be one.')
      const frameBytes = HEADER_BYTES + messageBytes + textBytes + bodyBytes
      if (buffer.length - offset < frameBytes) {
        this.#neededBytes = frameBytes
        break
      }
      const textStart = offset + HEADER_BYTES + messageBytes
      const bodyStart = textStart + textBytes
      const message: Message = JSON.parse(buffer.toString('utf8', offset + HEADER_BYTES, textStart))
      const text = textBytes === 0 ? '' : buffer.toString('utf8', textStart, bodyStart)
      offset += frameBytes
      // The body is a view: whoever keeps it longer than the turn keeps the whole chunk, so large stretches of it are copied by their owner.
      yield { message, text, body: bodyBytes === 0 ? NO_BODY : buffer.subarray(bodyStart, bodyStart + bodyBytes) }
    }
    const rest = offset === buffer.length ? [] : [buffer.subarray(offset)]
    this.#chunks = rest
    this.#bufferedBytes = buffer.length - offset
  }
}
