import { STREAM_MESSAGE_BYTES, STREAM_WINDOW_BYTES, type Holder } from '@carpool/core'
import { CREDIT_UNIT, ENTRIES, STREAM_FLAGS, STREAM_OWNERS } from '@carpool/runtime/bridge'
import {
  NO_BODY,
  type BodyTurns,
  type StreamAbort,
  type StreamCredit,
  type StreamData,
  type StreamMoved,
  type StreamOwner,
} from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import { Entry } from '../scheduler/batch.ts'
import type { Send } from '../send.ts'

/** What a stream needs of a guest. */
export interface StreamingGuest {
  /** Its open streams: see {@link streamKey}. */
  readonly streams: Map<number, Stream>
  readonly queue: { pushSoon(entry: Entry, behind?: Entry): void }
  /** Whose turns its bytes take. */
  readonly holder: Holder
}

/** Under which a guest has its streams. @param owner index of what it belongs to */
export function streamKey(owner: number, guestNumber: number): number {
  return guestNumber * CREDIT_UNIT + owner
}

/** Hears of a stream. */
export interface StreamListener {
  /** Bytes came or went, or were taken. */
  moved?(): void
  /** The guest sends more than it may: its runtime would not. */
  overran(): void
}

export interface StreamInit {
  readonly of: StreamOwner
  /** On the connection. */
  readonly number: number
  /** The guest's own; default: the same. */
  readonly guestNumber?: number
  /** What its entries are charged to. */
  readonly account: Account
  readonly listener: StreamListener
  /** What the guest may send before any is credited. Default: a window. */
  readonly window?: number
}

interface StreamsParts {
  readonly send: Send
  readonly bodies: BodyTurns
}

/** What a part of a message takes of the window besides its bytes. */
function costOf(message: StreamData['message'], more: boolean): number {
  return message === undefined || more ? 0 : STREAM_MESSAGE_BYTES
}

/**
 * The stream of a call, fetch or socket between the server and a guest, both directions. The guest passes on what comes and
 * credits what goes; here both are held to the window, so that neither a slow guest nor a slow server has more than that in
 * memory.
 */
export class Stream {
  readonly of: StreamOwner
  readonly number: number
  /** Bytes that came, and that went. */
  receivedBytes = 0
  sentBytes = 0
  /** What comes, or what goes, may pass this host by, and is told of now and then. */
  isJoined = false
  /** What its entries are charged to. */
  account: Account
  readonly #owner: number
  readonly #listener: StreamListener
  readonly #parts: StreamsParts
  readonly #forget: (stream: Stream) => void
  readonly #guestNumber: number
  #guest: StreamingGuest | undefined
  /** What came before there was a guest. */
  #held: Entry[] = []
  /** What came and was not credited. */
  #uncredited = 0
  /** What the guest may send. */
  #window: number
  #isReceiving = true
  #isSending = true
  /** The last of each kind: while it waits to go in, more is added to it. */
  #data: Entry | undefined
  #credit: Entry | undefined
  /** Where what comes is to go out, and how much had come when the server was asked for that. */
  #target: Stream | undefined
  #askedAtBytes = -1
  /** Has another joined with this one, once there is a window. */
  #onWindow: (() => void) | undefined
  /** The last that went to the guest. */
  #last: Entry | undefined

  constructor(
    { of, number, guestNumber = number, account, listener, window = STREAM_WINDOW_BYTES }: StreamInit,
    parts: StreamsParts,
    forget: (stream: Stream) => void,
  ) {
    this.of = of
    this.number = number
    this.#guestNumber = guestNumber
    this.#owner = STREAM_OWNERS.indexOf(of)
    this.account = account
    this.#listener = listener
    this.#window = window
    this.#parts = parts
    this.#forget = forget
  }

  /** From now on this guest has it; what came before goes in. Harmless if it has it. */
  attach(guest: StreamingGuest): void {
    this.#guest = guest
    guest.streams.set(streamKey(this.#owner, this.#guestNumber), this)
    for (const entry of this.#held) this.push(entry)
    this.#held = []
  }

  /** Nothing comes or goes any more. Harmless if it was closed. */
  close(): void {
    this.#isReceiving = this.#isSending = false
    this.#target = this.#onWindow = undefined
    this.#guest?.streams.delete(streamKey(this.#owner, this.#guestNumber))
    this.#forget(this)
  }

  // What the server says.

  /** Bytes have come for the guest. */
  came({ end, message, more }: Pick<StreamData, 'end' | 'message' | 'more'>, closing: string, bytes: Uint8Array): void {
    if (!this.#isReceiving) return
    this.#uncredited += bytes.length + costOf(message, more === true)
    this.receivedBytes += bytes.length
    this.#listener.moved?.()
    // With views of what the socket gave in its place, the host's loop took a tenth more CPU.
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
    const isEnd = end === true
    // Who waits for the last bytes of a socket goes on before its end is heard of, as in Node.js.
    const isEndApart = isEnd && this.of === 'socket'
    let flags = isEnd && !isEndApart ? STREAM_FLAGS.end : 0
    if (message !== undefined) flags |= STREAM_FLAGS[message] | (more === true ? STREAM_FLAGS.more : 0)
    const last = this.#data
    // Messages stay what they are, and nothing comes behind an end.
    if (last !== undefined && !last.hasGoneIn && message === undefined && (last.kind & ~STREAM_FLAGS.end) === this.#owner) {
      last.body += text
      last.kind |= flags
      last.text = closing
    } else if (!isEndApart || text !== '') {
      this.#data = this.#push(ENTRIES.streamData, this.#owner | flags, closing, text)
    }
    if (isEndApart) this.#push(ENTRIES.streamData, this.#owner | STREAM_FLAGS.end, closing)
    if (isEnd) this.#isReceiving = false
  }

  /** The guest may send so many more bytes. */
  credited(bytes: number): void {
    if (!this.#isSending) return
    this.#window += bytes
    this.#listener.moved?.()
    const onWindow = this.#onWindow
    this.#onWindow = undefined
    onWindow?.()
    const last = this.#credit
    if (last !== undefined && !last.hasGoneIn) last.kind += bytes * CREDIT_UNIT
    else this.#credit = this.#push(ENTRIES.streamCredit, this.#owner + bytes * CREDIT_UNIT)
  }

  /** One direction has ended early, for the server's side. */
  broke(side: StreamAbort['side'], why: string): void {
    if (side === 'sent') {
      if (!this.#isReceiving) return
      this.#isReceiving = false
      this.#push(ENTRIES.streamAbort, this.#owner, why)
    } else {
      if (!this.#isSending) return
      this.#isSending = false
      this.#push(ENTRIES.streamAbort, this.#owner | STREAM_FLAGS.received, why)
    }
  }

  /** So much has gone to the stream that this one was joined with. */
  moved(bytes: number): void {
    if (this.#isReceiving) this.#moved(bytes)
  }

  // What the guest says.

  /**
   * What comes is to go out by another stream of the guest, or back by this one, without coming here.
   * @param cameBytes that have entered, and gone out: if more are on their way, those have to do the same first
   */
  joinTo(target: Stream, cameBytes: number): void {
    const { of } = this
    if (of === 'socket' || target.of === 'socket') return
    if (!this.#isReceiving || !target.#isSending || cameBytes !== this.receivedBytes) return
    // A fetch may not have begun.
    if (target.#window === 0) return void (target.#onWindow = () => this.joinTo(target, cameBytes))
    if (this.#askedAtBytes === cameBytes) return
    this.#askedAtBytes = cameBytes
    this.#target = target
    this.isJoined = target.isJoined = true
    this.#moved(0)
    const to = { of: target.of, number: target.number }
    target.inOrder(NO_BODY, () => this.#parts.send({ type: 'stream-join', of, number: this.number, to, cameBytes }))
  }

  /** @param flags STREAM_FLAGS */
  sent(flags: number, closing: string, said: string | Uint8Array): void {
    if (!this.#isSending) return
    const message = (flags & STREAM_FLAGS.text) !== 0 ? 'text' : (flags & STREAM_FLAGS.bytes) !== 0 ? 'bytes' : undefined
    const more = message !== undefined && (flags & STREAM_FLAGS.more) !== 0
    const cost = said.length + costOf(message, more)
    if (cost > this.#window) return this.#listener.overran()
    this.#window -= cost
    this.sentBytes += said.length
    this.#listener.moved?.()
    const end = (flags & STREAM_FLAGS.end) !== 0
    if (end) this.#isSending = false
    const { of, number } = this
    const data: StreamData = {
      type: 'stream-data',
      of,
      number,
      ...(end && { end }),
      ...(message !== undefined && { message }),
      ...(more && { more }),
    }
    const body = typeof said === 'string' ? Buffer.from(said, 'latin1') : said
    this.inOrder(body, (bytes) => this.#parts.send(data, closing, bytes))
  }

  /** Sends something behind the bytes that were sent, by turns with other functions. */
  inOrder(body: Uint8Array, send: (body: Uint8Array) => void): void {
    if (this.#guest === undefined) send(body)
    else this.#parts.bodies.enterPart(this.#guest.holder, body, send)
  }

  /** The guest has passed on so many of the bytes that came. */
  took(bytes: number): void {
    const taken = Math.min(bytes, this.#uncredited)
    if (!this.#isReceiving || taken <= 0) return
    this.#uncredited -= taken
    this.#parts.send({ type: 'stream-credit', of: this.of, number: this.number, bytes: taken })
  }

  /** The guest ends one direction early: what it sends breaks off, or it takes no more. */
  gaveUp(flags: number, why: string): void {
    const side = (flags & STREAM_FLAGS.received) === 0 ? 'sent' : 'received'
    if (side === 'sent' ? !this.#isSending : !this.#isReceiving) return
    if (side === 'sent') this.#isSending = false
    else this.#isReceiving = false
    this.inOrder(NO_BODY, () => this.#parts.send({ type: 'stream-abort', of: this.of, number: this.number, side }, why))
  }

  #moved(bytes: number): void {
    const target = this.#target
    this.receivedBytes += bytes
    this.#listener.moved?.()
    if (target === undefined) return
    target.sentBytes += bytes
    target.#listener.moved?.()
  }

  /** Has an entry go in behind those that told of the stream before. */
  push(entry: Entry): void {
    if (this.#guest === undefined) this.#held.push(entry)
    else this.#guest.queue.pushSoon(entry, this.#last)
    this.#last = entry
  }

  #push(op: number, kind: number, text = '', body = ''): Entry {
    const entry = new Entry(this.account, op, this.#guestNumber, text, kind, body)
    this.push(entry)
    return entry
  }
}

/** The open streams of a connection, by what they belong to and its number there. */
export class Streams {
  readonly #parts: StreamsParts
  readonly #open: Readonly<Record<StreamOwner, Map<number, Stream>>> = {
    call: new Map(),
    fetch: new Map(),
    socket: new Map(),
  }

  readonly #forget = ({ of, number }: Stream): void => void this.#open[of].delete(number)

  constructor(parts: StreamsParts) {
    this.#parts = parts
  }

  /** How many are open. */
  get size(): number {
    return this.#open.call.size + this.#open.fetch.size + this.#open.socket.size
  }

  /** To be closed when its call, fetch or socket has ended. */
  open(init: StreamInit): Stream {
    const stream = new Stream(init, this.#parts, this.#forget)
    this.#open[init.of].set(init.number, stream)
    return stream
  }

  /** The server says something of a stream. What has ended here hears nothing. */
  receive(message: StreamData | StreamCredit | StreamAbort | StreamMoved, text: string, body: Uint8Array): void {
    const stream = this.#open[message.of].get(message.number)
    if (stream === undefined) return
    switch (message.type) {
      case 'stream-data':
        return stream.came(message, text, body)
      case 'stream-credit':
        return stream.credited(message.bytes)
      case 'stream-abort':
        return stream.broke(message.side, text)
      case 'stream-moved':
        return stream.moved(message.bytes)
    }
  }
}
