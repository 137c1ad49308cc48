import type { Duplex } from 'node:stream'
import { BodyTurns } from './body-turns.ts'
import { FrameReader, FrameWriter, NO_BODY, type OnMessage } from './frame.ts'

export interface ConnectionHandlers<In> {
  readonly onMessage: OnMessage<In>
  /** The stream ended or broke, or the peer broke the protocol (then with the reason). Called once. */
  onClose(reason: Error | undefined): void
}

/** From so many bytes on, messages are written before the end of the turn: they need not all be in memory twice. */
const MAX_WAITING_BYTES = 1024 * 1024

/** Typed messages over a duplex stream. Those sent in one turn of the event loop leave in one frame, with one write. */
export class Connection<In, Out extends { readonly type: string }> {
  /** Sends large bodies by turns. */
  readonly bodies = new BodyTurns({
    backlogBytes: () => this.backlogBytes,
    sendPart: (number, totalBytes, part) => {
      if (!this.#open) return
      this.#writer.appendPart(number, totalBytes, part)
      this.#flushSoon()
    },
  })
  readonly #stream: Duplex
  readonly #writer = new FrameWriter()
  readonly #reader = new FrameReader<In>()
  #flushScheduled = false
  #open = true

  constructor(stream: Duplex, handlers: ConnectionHandlers<In>) {
    this.#stream = stream
    const close = (reason: Error | undefined): void => {
      if (!this.#open) return
      this.#open = false
      stream.destroy()
      handlers.onClose(reason)
    }
    const onMessage: OnMessage<In> = (message, text, body) => {
      if (this.#open) handlers.onMessage(message, text, body)
    }
    stream.on('data', (chunk: Buffer) => {
      try {
        this.#reader.read(chunk, onMessage)
      } catch (cause) {
        close(new Error('The peer broke the protocol.', { cause }))
      }
    })
    stream.on('drain', () => this.bodies.sendOn())
    stream.once('error', close)
    stream.once('close', () => close(undefined))
    stream.once('end', () => close(undefined))
  }

  /** What was sent and the system has not taken yet, in bytes. */
  get backlogBytes(): number {
    return this.#writer.bytes + this.#stream.writableLength
  }

  /**
   * Sends a message by the end of the turn, or nothing if the connection is closed. Text and body must not change any more.
   * @param body it, or the number under which it has gone ahead: see {@link bodies}
   */
  send(message: Out, text = '', body: Uint8Array | number = NO_BODY): void {
    if (!this.#open) return
    if (typeof body === 'number') this.#writer.appendBehindParts(message, text, body)
    else this.#writer.append(message, text, body)
    this.#flushSoon()
  }

  close(): void {
    this.#write()
    this.#stream.end()
  }

  #flushSoon(): void {
    if (this.#writer.bytes >= MAX_WAITING_BYTES) this.#write()
    if (this.#flushScheduled) return
    this.#flushScheduled = true
    // The check phase comes right after the poll phase: whatever the sockets brought in one poll leaves together.
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#flushScheduled = false
    this.#write()
  }

  #write(): void {
    if (!this.#open || this.#writer.isEmpty) return
    if (!this.#writer.isLarge) return void this.#stream.write(this.#writer.take())
    this.#stream.cork()
    for (const part of this.#writer.takeParts()) this.#stream.write(part)
    this.#stream.uncork()
  }
}
