import { maxBodyBytes, messageCost, type Channel, type MessageKind, type MessagePart } from '../../web-api/host.ts'
import type { Inside, OtherEnd } from './web-socket.ts'

const TOO_LARGE = 1009

/** The client of a call, or the server that the function has connected to, as a WebSocket has it: by a channel. */
export class ChannelEnd implements OtherEnd {
  readonly #channel: Channel
  readonly #inside: Inside
  readonly #onEnd: () => void
  /** Of a message that comes in parts. */
  #parts = ''

  constructor(channel: Channel, inside: Inside, onEnd: () => void) {
    this.#channel = channel
    this.#inside = inside
    this.#onEnd = onEnd
  }

  /** Begins to take what comes. */
  receive(): void {
    this.#channel.receive({
      data: () => {},
      message: (part) => this.#came(part),
      ended: (closing) => this.#closed(closing),
      failed: () => {
        this.#inside.broke()
        this.#onEnd()
      },
    })
  }

  get waitingBytes(): number {
    return this.#channel.messageBytes
  }

  message(kind: MessageKind, text: string): void {
    this.#channel.sendMessage(kind, text)
  }

  close(code: number, reason: string): void {
    this.#channel.end(`{"code":${code},"reason":${JSON.stringify(reason)}}`)
  }

  #came(part: MessagePart): void {
    const { kind, text, more } = part
    const whole = this.#parts + text
    if (more) {
      this.#parts = whole
      // The rest must not wait for the window.
      this.#channel.credit(messageCost(part))
      if (whole.length > maxBodyBytes) this.#inside.socket.close(TOO_LARGE, `The limit for a message is ${maxBodyBytes} bytes.`)
      return
    }
    this.#parts = ''
    this.#inside.message(kind, whole, () => this.#channel.credit(messageCost(part)))
  }

  #closed(closing: string): void {
    const { code, reason } = JSON.parse(closing) as { code: number; reason: string }
    this.#inside.closed(code, reason)
    this.#onEnd()
  }
}
