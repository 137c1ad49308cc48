/** The two directions of a call that streams, between its caller and its host. Neither is trusted with what the other holds. */
import {
  announcedLength,
  isBodiless,
  type AnswerSink,
  type BegunAnswer,
  type Call,
  type ResponseHead,
  type Upload,
  type UploadTaker,
} from '@carpool/core'
import {
  NO_BODY,
  STREAM_PART_BYTES,
  STREAM_WINDOW_BYTES,
  type Cancel,
  type StreamAbort,
  type StreamCredit,
  type StreamData,
} from '@carpool/wire'

import type { StreamRoom, StreamSource, StreamTarget } from './joined-streams.ts'

export type SendToHost = (message: StreamData | StreamCredit | StreamAbort | Cancel, text?: string, body?: Uint8Array) => void

/** Sends something of a stream by turns with those of other functions. */
export type EnterPart = (body: Uint8Array, send: (body: Uint8Array) => void) => void

/** Sends the body of a request to the host, as far as the function takes it, or to where the function passes it on. */
export class UploadSender implements UploadTaker, StreamSource {
  readonly functionName: string
  readonly #number: number
  readonly #upload: Upload
  readonly #send: SendToHost
  readonly #enter: EnterPart
  readonly #sendPart = (body: Uint8Array): void => {
    this.#isWaiting = false
    const end = this.#upload.state === 'ended'
    if (end) this.#isOver = true
    this.#send({ type: 'stream-data', of: 'call', number: this.#number, ...(end && { end }) }, '', body)
    this.readable()
  }
  #windowBytes = STREAM_WINDOW_BYTES
  #sentBytes = 0
  #target: StreamRoom | undefined
  /** A part waits for its turn: the rest stays where it is. */
  #isWaiting = false
  #isSending = false
  #isOver = false

  constructor({ number, functionName }: Call, upload: Upload, send: SendToHost, enter: EnterPart) {
    this.functionName = functionName
    this.#number = number
    this.#upload = upload
    this.#send = send
    this.#enter = enter
  }

  get isWanted(): boolean {
    return this.#takesBytes > 0 && !this.#isOver
  }

  readable(): void {
    if (this.#isSending) return
    this.#isSending = true
    while (!this.#isWaiting && !this.#isOver && this.#enterNext());
    this.#isSending = false
  }

  /** The function has taken so much. A host may say so of more than it got. */
  credit(bytes: number): void {
    this.#windowBytes = Math.min(STREAM_WINDOW_BYTES, this.#windowBytes + bytes)
    this.readable()
  }

  hasSent(bytes: number): boolean {
    return this.#sentBytes === bytes && !this.#isWaiting && !this.#isOver && this.#target === undefined
  }

  passTo(target: StreamRoom): void {
    this.#target = target
    this.readable()
  }

  goOn(): void {
    this.readable()
  }

  /** The function takes nothing more, or the call is over: what the client still sends goes nowhere. */
  stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#upload.stop()
  }

  /** What may be taken at once. Of what is passed on there is always room for a part soon, so that no piece of one goes alone. */
  get #takesBytes(): number {
    if (this.#target === undefined) return Math.min(this.#windowBytes, STREAM_PART_BYTES)
    return this.#target.aheadBytes + STREAM_PART_BYTES <= STREAM_WINDOW_BYTES ? STREAM_PART_BYTES : 0
  }

  /** @returns whether there was something to send */
  #enterNext(): boolean {
    const upload = this.#upload
    if (upload.state === 'broken') {
      this.#isOver = true
      this.#enter(NO_BODY, () => this.#send({ type: 'stream-abort', of: 'call', number: this.#number, side: 'sent' }, upload.why))
      return false
    }
    const takesBytes = this.#takesBytes
    const bytes = takesBytes === 0 ? undefined : upload.take(takesBytes)
    if (bytes === undefined && upload.state !== 'ended') return false
    if (bytes !== undefined && this.#target !== undefined) {
      this.#target.write(bytes)
      return true
    }
    this.#windowBytes -= bytes?.length ?? 0
    this.#sentBytes += bytes?.length ?? 0
    this.#isWaiting = true
    this.#enter(bytes ?? NO_BODY, this.#sendPart)
    return true
  }
}

/**
 * An answer whose head came ahead of its body: passes the body on, or collects it for a caller who wants it whole. Where an
 * answer has no body, nothing is passed on before the end.
 */
export class AnswerStream implements BegunAnswer, StreamTarget {
  readonly kind = 'answer'
  readonly functionName: string
  readonly head: ResponseHead
  readonly atMs: number
  bytes = 0
  /** What was wrong with it, so that its call fails whatever the host says. */
  wrong: string | undefined
  readonly #call: Call
  readonly #send: SendToHost
  readonly #maxBodyBytes: number
  readonly #sink: AnswerSink | undefined
  /** How long the function said that the body is, if it has one. */
  readonly #lengthBytes: number | undefined
  #collected: Uint8Array[] = []
  #windowBytes = STREAM_WINDOW_BYTES
  #source: Pick<StreamSource, 'goOn'> | undefined
  #isEnded = false
  #isStopped = false

  /** @param head it, or what is wrong with it */
  constructor(call: Call, head: ResponseHead | string, maxBodyBytes: number, send: SendToHost) {
    this.atMs = performance.now()
    this.functionName = call.functionName
    this.#call = call
    this.#send = send
    this.#maxBodyBytes = maxBodyBytes
    this.head = typeof head === 'string' ? { status: 502, headers: [] } : head
    if (typeof head === 'string') this.fail(head)
    else if (isBodiless(call.head.method, head.status)) this.#stop()
    else {
      this.#lengthBytes = announcedLength(head.headers)
      this.#sink = call.beginAnswer(head, (bytes) => this.#credit(bytes))
    }
  }

  get status(): number | undefined {
    return this.#sink === undefined ? undefined : this.head.status
  }

  /** The body as a whole, for a caller who wants that. */
  get body(): Uint8Array {
    return this.#collected.length === 1 ? this.#collected[0]! : Buffer.concat(this.#collected)
  }

  /** @throws Error if the host sends more than it may: it does not keep to the protocol */
  receive(bytes: Uint8Array, isEnd: boolean): void {
    // What is joined gets nothing from there, except of a guest that is not what it should be.
    if (this.#source !== undefined) return
    if (bytes.length > STREAM_PART_BYTES || bytes.length > this.#windowBytes) throw new Error('A stream passes its window.')
    if (this.#isEnded) return
    this.#isEnded = isEnd
    this.#take(bytes)
  }

  get aheadBytes(): number {
    return STREAM_WINDOW_BYTES - this.#windowBytes
  }

  get isJoinable(): boolean {
    return this.#source === undefined && !this.#isEnded && !this.#isStopped && this.wrong === undefined
  }

  joinWith(source: Pick<StreamSource, 'goOn'>): void {
    this.#source = source
  }

  write(bytes: Uint8Array): void {
    if (!this.#isEnded) this.#take(bytes)
  }

  #take(bytes: Uint8Array): void {
    this.#windowBytes -= bytes.length
    if (this.#isStopped || this.wrong !== undefined) return
    this.bytes += bytes.length
    if (this.#lengthBytes !== undefined && this.bytes > this.#lengthBytes) {
      return this.fail(`The response body has more than the ${this.#lengthBytes} bytes that its content-length says.`)
    }
    if (bytes.length === 0) return
    if (this.#sink !== undefined) return this.#sink.write(bytes)
    if (this.bytes > this.#maxBodyBytes) {
      return this.fail(`The response body has at least ${this.bytes} bytes; the limit is ${this.#maxBodyBytes}.`)
    }
    // A copy, which the `slice` of a Buffer is not: it may be a view of a whole frame.
    this.#collected.push(new Uint8Array(bytes))
    this.#credit(bytes.length)
  }

  /** The host says that the body is whole. @returns what is wrong with it */
  finish(): string | undefined {
    const isShort = this.#lengthBytes !== undefined && this.bytes < this.#lengthBytes && !this.#isStopped
    if (isShort) this.wrong ??= `The response body has ${this.bytes} bytes, and its content-length says ${this.#lengthBytes}.`
    return this.wrong
  }

  /** The call has ended: what another stream still passes on goes nowhere. */
  close(): void {
    this.#isEnded = true
  }

  /** It cannot be passed on: the host is to end the call. */
  fail(wrong: string): void {
    this.wrong = wrong
    this.#collected = []
    this.#send({ type: 'cancel', invocation: this.#call.number })
  }

  #credit(bytes: number): void {
    if (bytes <= 0 || this.#isEnded) return
    this.#windowBytes += bytes
    if (this.#source !== undefined) this.#source.goOn()
    else this.#send({ type: 'stream-credit', of: 'call', number: this.#call.number, bytes })
  }

  /** Nobody wants the body. The call goes on to its end. */
  #stop(): void {
    this.#isStopped = true
    this.#send({ type: 'stream-abort', of: 'call', number: this.#call.number, side: 'received' })
  }
}
