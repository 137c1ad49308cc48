/**
 * The streams between guest and host: of each call, fetch or socket up to two, what comes and what goes. Bodies of requests,
 * responses and fetches, sockets and WebSockets are made of them.
 */
import { STREAM_MESSAGE_BYTES, STREAM_PART_BYTES, STREAM_WINDOW_BYTES } from '@carpool/core'
import { CREDIT_UNIT, NO_INVOCATION, OF_CALL, OWNER_MASK, STREAM_FLAGS } from '../bridge.ts'
import { ByteQueue } from './byte-queue.ts'
import { flushAtEnd } from './entry-end.ts'
import { type List, max, min, SafeList, SafeMap, SafeTypeError, stringSlice, typedArrayLength } from './language/primordials.ts'
import { bridge, enter } from './port.ts'
import { bytesFromLatin1, latin1FromBytes } from './web-api/encoding.ts'

/** What is taken of a stream is credited when it is so much, in bytes: the sender has the rest of its window meanwhile. */
const CREDIT_STEP = 64 * 1024

/** Why what was sent breaks off. */
export const NOT_SENT = 'It could not be sent.'

export type MessageKind = 'text' | 'bytes'

/** Takes what comes by a channel. All bytes count as held until {@link Channel.credit} says that they were passed on. */
export interface Receiver {
  /** The caller keeps nothing of them. */
  data(bytes: Uint8Array<ArrayBuffer>): void
  /**
   * A part of a message of a WebSocket, whole unless it has `more`; the bytes of `text` have one character each. Every message
   * counts STREAM_MESSAGE_BYTES besides its bytes.
   */
  message?(part: MessagePart): void
  /** Nothing comes any more. @param closing of a WebSocket: JSON of its close code and reason */
  ended(closing: string): void
  /** It broke off. @param error for the function */
  failed(error: unknown): void
}

/** How what goes by a channel begins and ends, where that is more than its bytes. */
export interface Framing {
  /**
   * Before the first bytes leave, at the end of an entry.
   * @param isWhole all of it is there, and it is no more than one window
   * @returns whether they are to leave by the channel: else they were taken
   */
  begin(isWhole: boolean): boolean
  /** All has left. Default: its last bytes say so. */
  readonly end?: (() => void) | undefined
  /** It could not be sent or not even begin, mostly for want of memory. Default: the host is told that it breaks off. */
  readonly broke?: ((error: unknown) => void) | undefined
}

/** A message of a WebSocket, or a part of one. */
export interface MessagePart {
  readonly kind: MessageKind
  /** One character for each byte. */
  readonly text: string
  /** It goes on in the next part. */
  readonly more: boolean
}

/** What it takes of the window. */
export function messageCost({ text, more }: MessagePart): number {
  return text.length + (more ? 0 : STREAM_MESSAGE_BYTES)
}

/** Those that are open, by number and owner. */
const open = new SafeMap<number, Channel>()

function keyOf(owner: number, number: number): number {
  return number * CREDIT_UNIT + owner
}

export let isChannel: (value: unknown) => value is Channel

/** Both directions of a call's, fetch's or socket's bytes. */
export class Channel {
  readonly owner: number
  readonly number: number
  /** On whose behalf its entries run. */
  invocation: number
  /** Called when there is room again for what is to be sent. */
  onRoom: (() => void) | undefined
  /** Called when nobody takes any more of what is sent. */
  onStopped: ((error: unknown) => void) | undefined
  /** Called when the function wants no more of what comes; default: the host is told. */
  onUnwanted: ((why: unknown) => void) | undefined
  readonly #framing: Framing | undefined
  #receiver: Receiver | undefined
  /** What came before there was a receiver. */
  readonly #arrived = new ByteQueue()
  #messages: List<MessagePart> | undefined
  #inState: 'open' | 'ended' | 'failed' | 'stopped' = 'open'
  #inClosing = ''
  #inError: unknown
  /** Taken and not credited. */
  #taken = 0
  readonly #leaving = new ByteQueue()
  #leavingMessages: List<MessagePart> | undefined
  #messageBytes = 0
  #window: number
  #outState: 'open' | 'ending' | 'over' = 'open'
  #closing = ''
  #hasBegun = false
  #isDirty = false
  /** What comes by it goes out here. */
  #source: Channel | undefined
  /** Bytes that have come, and how many had when the host was last told that they are passed on. */
  #cameBytes = 0
  #toldBytes = -1

  static {
    isChannel = (value): value is Channel => typeof value === 'object' && value !== null && #window in value
  }

  /**
   * Opens it; {@link close} must be called when its call, fetch or socket has ended.
   * @param owner OF_CALL, OF_FETCH or OF_SOCKET
   * @param window how much may leave before the host has credited any
   */
  constructor(owner: number, number: number, invocation: number, window = STREAM_WINDOW_BYTES, framing?: Framing) {
    this.owner = owner
    this.number = number
    this.invocation = invocation
    this.#window = window
    this.#framing = framing
    open.set(keyOf(owner, number), this)
  }

  // What comes.

  /** Of what it is the body. */
  get what(): 'request' | 'response' {
    return this.owner === OF_CALL ? 'request' : 'response'
  }

  /** Whether nobody has asked for what comes. */
  get isUnread(): boolean {
    return this.#receiver === undefined
  }

  /** From now on this one takes what comes; what has come before, at once. There is one at a time. */
  receive(receiver: Receiver): void {
    this.#receiver = receiver
    if (this.#arrived.length > 0) receiver.data(this.#arrived.takeAll())
    const messages = this.#messages
    this.#messages = undefined
    if (messages !== undefined) {
      for (let index = 0; index < messages.length; index++) receiver.message?.(messages[index]!)
    }
    if (this.#inState === 'ended') receiver.ended(this.#inClosing)
    else if (this.#inState === 'failed') receiver.failed(this.#inError)
  }

  /**
   * What comes goes out by another channel, or back by this one, and its end too. Once nothing of it waits here, it is passed on
   * without the guest.
   */
  relayTo(target: Channel, failed: (error: unknown) => void): void {
    target.#source = this
    target.onStopped = (error) => this.stopReceiving('Nobody takes it.', error)
    this.receive({
      // It is credited where it is passed on, when this has caught up.
      data: (bytes) => target.send(bytes),
      ended: () => target.end(),
      failed,
    })
    target.begin()
  }

  /** So many of the bytes that the receiver was given were passed on: as many more may come. */
  credit(bytes: number): void {
    if (this.#inState !== 'open') return
    this.#taken += bytes
    if (this.#taken < CREDIT_STEP) return
    bridge.streamCredit(this.number, this.owner, this.#taken)
    this.#taken = 0
  }

  /** Nobody wants what comes: the receiver hears no more. Without effect if it has ended. */
  stopReceiving(why: string, reason?: unknown): void {
    if (this.#inState !== 'open') return
    this.#inState = 'stopped'
    this.#arrived.empty()
    this.#messages = this.#receiver = undefined
    const { onUnwanted } = this
    if (onUnwanted !== undefined) onUnwanted(reason)
    else bridge.streamAbort(this.number, this.owner | STREAM_FLAGS.received, why)
  }

  /** What comes has ended, or broke off; whoever ends or fails it hears nothing of it. Without effect if it has ended. */
  endIncoming(closing = ''): void {
    if (this.#inState !== 'open') return
    this.#inState = 'ended'
    this.#inClosing = closing
    try {
      this.#receiver?.ended(closing)
    } catch (error) {
      this.#breakOff(error)
    }
  }

  failIncoming(error: unknown): void {
    if (this.#inState !== 'open') return
    this.#inState = 'failed'
    this.#inError = error
    this.#receiver?.failed(error)
  }

  /** Taking what came threw, mostly for want of memory. Without this, its reader would wait for ever. */
  #breakOff(error: unknown): void {
    const receiver = this.#receiver
    this.stopReceiving('It could not be taken.', error)
    this.#inState = 'failed'
    this.#inError = error
    receiver?.failed(error)
  }

  // What goes.

  /** Whether whoever sends has to wait for {@link onRoom}. What is sent all the same waits here. */
  get isFull(): boolean {
    // Until it begins, a window of it may come together.
    const room = this.#hasBegun ? this.#window : max(this.#window, STREAM_WINDOW_BYTES)
    return this.#leaving.length + this.#messageBytes >= room
  }

  /** Whether anything may have left. */
  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** What was sent and has not left, in bytes. */
  get leavingBytes(): number {
    return this.#leaving.length
  }

  /** What was sent of messages and has not left, in bytes. */
  get messageBytes(): number {
    return this.#messageBytes
  }

  /** Sends bytes, with what else is sent in this entry. They are copied. Without effect once it has ended. */
  send(bytes: Uint8Array): void {
    if (this.#outState !== 'open') return
    this.#leaving.append(bytes)
    this.#flushSoon()
  }

  /** Sends a message of a WebSocket. @param text with one character for each byte */
  sendMessage(kind: MessageKind, text: string): void {
    if (this.#outState !== 'open') return
    const messages = (this.#leavingMessages ??= new SafeList())
    let start = 0
    do {
      const end = min(text.length, start + STREAM_PART_BYTES)
      const part = { kind, text: stringSlice(text, start, end), more: end < text.length }
      messages[messages.length] = part
      this.#messageBytes += messageCost(part)
      start = end
    } while (start < text.length)
    this.#flushSoon()
  }

  /** Nothing is sent behind what was. @param closing of a WebSocket: JSON of its close code and reason */
  end(closing = ''): void {
    if (this.#outState !== 'open') return
    this.#outState = 'ending'
    this.#closing = closing
    this.#flushSoon()
  }

  /** What was sent breaks off. Without effect once it has ended. */
  abort(why: string): void {
    if (this.#outState === 'over') return
    this.#drop()
    bridge.streamAbort(this.number, this.owner, why)
  }

  /** What waits, for a {@link Framing} that sends it by other means, one character for each byte. Nothing more is sent. */
  takeLeaving(): string {
    const text = latin1FromBytes(this.#leaving.takeAll())
    this.#drop()
    return text
  }

  /** Begins at the end of the entry, whether anything is sent or not. */
  begin(): void {
    this.#flushSoon()
  }

  /**
   * Sends what waits and may leave. Called at the end of the entry, so that what is written bit by bit leaves as one. If that
   * fails, it breaks off: nothing may go on behind a hole.
   */
  flush(): void {
    this.#isDirty = false
    if (this.#hasEndedSending) return
    try {
      this.#sendWaiting()
    } catch (error) {
      this.#stop(error)
      if (this.#framing?.broke !== undefined) this.#framing.broke(error)
      else bridge.streamAbort(this.number, this.owner, NOT_SENT)
    }
  }

  #sendWaiting(): void {
    if (!this.#hasBegun) {
      this.#hasBegun = true
      const isWhole = this.#outState === 'ending' && this.#leaving.length <= STREAM_WINDOW_BYTES
      if (this.#framing?.begin(isWhole) === false) return this.#drop()
      // It may have failed to.
      if (this.#hasEndedSending) return
    }
    if (this.#leavingMessages !== undefined) this.#flushMessages(this.#leavingMessages)
    let isEndSaid = false
    for (;;) {
      const bytes = this.#leaving.takeTogether(min(STREAM_PART_BYTES, this.#window))
      if (bytes === undefined) break
      this.#window -= typedArrayLength(bytes)
      isEndSaid = this.#framing?.end === undefined && this.#outState === 'ending' && this.#leaving.length === 0
      this.#sayData(isEndSaid ? STREAM_FLAGS.end : 0, isEndSaid ? this.#closing : '', bytes)
    }
    if (this.#leaving.length > 0 || this.#leavingMessages !== undefined) return
    if (this.#source !== undefined && this.#outState === 'open') return this.#join(this.#source)
    if (this.#outState !== 'ending') return
    this.#outState = 'over'
    if (this.#framing?.end !== undefined) this.#framing.end()
    else if (!isEndSaid) this.#sayData(STREAM_FLAGS.end, this.#closing, '')
  }

  /**
   * Its call, fetch or socket has ended: nothing comes or goes any more. Who still reads or sends hears of the error. Harmless
   * if it was closed.
   */
  close(error: unknown): void {
    open.delete(keyOf(this.owner, this.number))
    this.failIncoming(error)
    this.#stop(error)
  }

  // Entries.

  came(flags: number, closing: string, bytes: string | Uint8Array<ArrayBuffer>): void {
    if (this.#inState !== 'open') return
    try {
      if (typeof bytes !== 'string') this.#bytesCame(bytes)
      else if ((flags & (STREAM_FLAGS.text | STREAM_FLAGS.bytes)) !== 0) {
        const kind = (flags & STREAM_FLAGS.text) === 0 ? 'bytes' : 'text'
        this.#messageCame({ kind, text: bytes, more: (flags & STREAM_FLAGS.more) !== 0 })
      } else if (bytes.length > 0) this.#bytesCame(bytesFromLatin1(bytes))
    } catch (error) {
      return this.#breakOff(error)
    }
    if ((flags & STREAM_FLAGS.end) !== 0) this.endIncoming(closing)
  }

  credited(bytes: number): void {
    if (this.#outState === 'over') return
    this.#window += bytes
    if (this.#leaving.length > 0 || this.#leavingMessages !== undefined) this.#flushSoon()
    if (this.isFull) return
    const { onRoom } = this
    onRoom?.()
  }

  stopped(why: string): void {
    if (this.#outState === 'over') return
    this.#stop(new SafeTypeError(why))
    // Of an answer of which nobody wants the rest, nothing is left to send.
    this.#framing?.end?.()
  }

  get #hasEndedSending(): boolean {
    return this.#outState === 'over'
  }

  #stop(error: unknown): void {
    if (this.#outState === 'over') return
    const wasEnding = this.#outState === 'ending'
    this.#drop()
    const { onStopped } = this
    if (!wasEnding) onStopped?.(error)
  }

  #bytesCame(bytes: Uint8Array<ArrayBuffer>): void {
    this.#cameBytes += typedArrayLength(bytes)
    if (this.#receiver === undefined) this.#arrived.append(bytes)
    else this.#receiver.data(bytes)
  }

  #messageCame(message: MessagePart): void {
    if (this.#receiver !== undefined) return this.#receiver.message?.(message)
    const messages = (this.#messages ??= new SafeList())
    messages[messages.length] = message
  }

  #flushMessages(messages: List<MessagePart>): void {
    let index = 0
    for (; index < messages.length && messageCost(messages[index]!) <= this.#window; index++) {
      const part = messages[index]!
      this.#window -= messageCost(part)
      this.#messageBytes -= messageCost(part)
      this.#sayData(STREAM_FLAGS[part.kind] | (part.more ? STREAM_FLAGS.more : 0), '', part.text)
    }
    const left: List<MessagePart> = new SafeList()
    for (; index < messages.length; index++) left[left.length] = messages[index]!
    this.#leavingMessages = left.length === 0 ? undefined : left
  }

  #join(source: Channel): void {
    if (source.#toldBytes === source.#cameBytes) return
    source.#toldBytes = source.#cameBytes
    bridge.joinStreams(source.number, this.number, source.owner + this.owner * CREDIT_UNIT, source.#cameBytes)
  }

  #sayData(flags: number, closing: string, bytes: string | Uint8Array): void {
    bridge.streamData(this.number, this.invocation, this.owner | flags, closing, bytes)
  }

  #flushSoon(): void {
    if (this.#isDirty) return
    flushAtEnd(this)
    this.#isDirty = true
  }

  #drop(): void {
    this.#outState = 'over'
    this.#source = undefined
    this.#leaving.empty()
    this.#leavingMessages = undefined
    this.#messageBytes = 0
  }
}

function entered(owner: number, number: number): Channel | undefined {
  const channel = open.get(keyOf(owner, number))
  enter(channel?.invocation ?? NO_INVOCATION)
  return channel
}

/** Entry: bytes have come. */
export function streamData(number: number, closing: string, flags: number, bytes: string | Uint8Array<ArrayBuffer>): void {
  entered(flags & OWNER_MASK, number)?.came(flags, closing, bytes)
}

/** Entry: more may be sent. */
export function streamCredit(number: number, kind: number): void {
  const owner = kind % CREDIT_UNIT
  entered(owner, number)?.credited((kind - owner) / CREDIT_UNIT)
}

/** Entry: one direction has ended early. */
export function streamAbort(number: number, why: string, flags: number): void {
  const channel = entered(flags & OWNER_MASK, number)
  if ((flags & STREAM_FLAGS.received) === 0) channel?.failIncoming(new SafeTypeError(why))
  else channel?.stopped(why)
}
