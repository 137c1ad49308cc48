import type { BegunAnswer, Call, CallerSocket, FunctionSocket, MessageKind, ResponseHead } from '@carpool/core'
import {
  NO_BODY,
  STREAM_MESSAGE_BYTES,
  STREAM_PART_BYTES,
  STREAM_WINDOW_BYTES,
  whole,
  type StreamAbort,
  type StreamCredit,
  type StreamData,
} from '@carpool/wire'
import type { EnterPart, SendToHost } from './call-streams.ts'

/** A function's side went away without a close frame. */
const FAULT = 1011
/** No code was given. */
const NO_CODE = 1005

/** The answer that accepts a WebSocket: passes on what caller and function say to each other. */
export class WebSocketAnswer implements BegunAnswer, FunctionSocket {
  readonly kind = 'websocket'
  readonly head: ResponseHead
  readonly atMs = performance.now()
  readonly body: Uint8Array = NO_BODY
  /** Of messages of the function, */
  bytes = 0
  /** and of the caller. */
  receivedBytes = 0
  wrong: string | undefined
  readonly #call: Call
  readonly #send: SendToHost
  readonly #enter: EnterPart
  #caller: CallerSocket | undefined
  /** What the host may send. */
  #windowBytes = STREAM_WINDOW_BYTES

  constructor(call: Call, head: ResponseHead, send: SendToHost, enter: EnterPart) {
    this.head = head
    this.#call = call
    this.#send = send
    this.#enter = enter
    const accepted = call.acceptWebSocket(head, this)
    if (typeof accepted === 'object') this.#caller = accepted
    else this.#fail(accepted ?? 'The response has status 101, and the request asked for no WebSocket.')
  }

  get status(): number | undefined {
    return this.#caller === undefined ? undefined : this.head.status
  }

  /** The host says that both ends are closed. */
  finish(): string | undefined {
    return this.wrong
  }

  // What the function does.

  /** @throws Error if the host sends more than it may: it does not keep to the protocol */
  receive(message: StreamData | StreamCredit | StreamAbort, text: string, body: Uint8Array): void {
    if (message.type === 'stream-credit') return this.#caller?.credited(whole(message.bytes))
    if (message.type === 'stream-abort') return void (message.side === 'sent' && this.#caller?.close(FAULT, ''))
    const { message: kind, more = false } = message
    if (kind !== undefined) {
      const cost = body.length + (more ? 0 : STREAM_MESSAGE_BYTES)
      if (body.length > STREAM_PART_BYTES || cost > this.#windowBytes) throw new Error('A stream passes its window.')
      this.#windowBytes -= cost
      this.bytes += body.length
      this.#caller?.send(kind === 'text' ? 'text' : 'bytes', body, more)
    }
    if (message.end === true) this.#caller?.close(...closingIn(text))
  }

  // What the caller does.

  part(kind: MessageKind, bytes: Uint8Array, more: boolean): void {
    this.receivedBytes += bytes.length
    const { number } = this.#call
    const data = { type: 'stream-data', of: 'call', number, message: kind, ...(more && { more }) } as const
    this.#enter(bytes, (sent) => this.#send(data, '', sent))
  }

  credit(bytes: number): void {
    this.#windowBytes += bytes
    this.#send({ type: 'stream-credit', of: 'call', number: this.#call.number, bytes })
  }

  closed(code: number, reason: string): void {
    const data = { type: 'stream-data', of: 'call', number: this.#call.number, end: true } as const
    this.#enter(NO_BODY, () => this.#send(data, JSON.stringify({ code, reason })))
  }

  /** It cannot be passed on: the host is to end the call. */
  #fail(wrong: string): void {
    this.wrong = wrong
    this.#send({ type: 'cancel', invocation: this.#call.number })
  }
}

/** What a host says of a close frame: it runs user code, and may say anything. */
function closingIn(text: string): [code: number, reason: string] {
  try {
    const { code, reason } = JSON.parse(text) as { code?: unknown; reason?: unknown }
    return [typeof code === 'number' ? code : NO_CODE, typeof reason === 'string' ? reason : '']
  } catch {
    return [FAULT, '']
  }
}
