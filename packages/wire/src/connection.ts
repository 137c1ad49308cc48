import type { Duplex } from 'node:stream'
import { FrameReader, FrameWriter, NO_BODY, type Frame } from './frame.ts'

export interface ConnectionHandlers<In> {
  onFrame(frame: Frame<In>): void
  /** The stream ended or broke, or the peer broke the protocol (then with the reason). Called once. */
  onClose(reason: Error | undefined): void
}

/** Typed frames over a duplex stream. Frames sent in one turn of the event loop leave in one write. */
export class Connection<In, Out extends { readonly type: string }> {
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
    stream.on('data', (chunk: Buffer) => {
      try {
        for (const frame of this.#reader.read(chunk)) {
          if (!this.#open) return
          handlers.onFrame(frame)
        }
      } catch (cause) {
        close(new Error('The peer broke the protocol.', { cause }))
      }
    })
    stream.once('error', close)
    stream.once('close', () => close(undefined))
    stream.once('end', () => close(undefined))
  }

  /** What was sent and the system has not taken yet, in bytes. */
  get backlogBytes(): number {
    return this.#writer.bytes + this.#stream.writableLength
  }

  /** Queues a frame; nothing happens if the connection is closed. */
  send(message: Out, text = '', body: Uint8Array = NO_BODY): void {
    if (!this.#open) return
    this.#writer.append(message, text, body)
    if (this.#flushScheduled) return
    this.#flushScheduled = true
    // The check phase comes right after the poll phase: whatever the sockets brought in one poll leaves together.
    setImmediate(() => this.#flush())
  }

  close(): void {
    this.#flush()
    this.#stream.end()
  }

  #flush(): void {
    this.#flushScheduled = false
    if (this.#open && !this.#writer.isEmpty) this.#stream.write(this.#writer.take())
  }
}
