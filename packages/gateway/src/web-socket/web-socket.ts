import type { Socket } from 'node:net'
import {
  STREAM_MESSAGE_BYTES,
  STREAM_PART_BYTES,
  STREAM_WINDOW_BYTES,
  type CallerSocket,
  type Clock,
  type FunctionSocket,
  type Holder,
  type MessageKind,
  type RoundRobin,
} from '@carpool/core'
import type { ByteBudget, Reservation } from '../byte-budget.ts'
import type { Sweep } from '../hardening/slow-clients.ts'
import { CLOSE_CODES, FrameDecoder, OPCODES } from './frame-decoder.ts'
import { closeFrame, frameOf } from './frames.ts'
import type { IdlePings, Pinged } from './idle-pings.ts'

/** What stands behind a client's WebSocket. */
export interface WebSocketPeer extends FunctionSocket {
  /** The client left without a close frame, or broke the protocol. Nothing comes behind it. */
  lost(): void
}

export interface WebSocketParts {
  readonly maxMessageBytes: number
  /** Decodes what all clients send by turns. */
  readonly turns: RoundRobin
  readonly budget: ByteBudget
  readonly sweep: Sweep
  readonly pings: IdlePings
  readonly clock: Clock
  /** Longest time in which a client may take nothing of what waits for it, in ms. */
  readonly stallMs: number
}

const NO_BYTES = new Uint8Array(0)
/** Frames, or pieces of them, that one turn decodes: some tens of µs. */
const STEPS = 32
/** What the client has taken is reported in portions of this many bytes. */
const CREDIT_BYTES = STREAM_WINDOW_BYTES / 4
/** How long a client gets to answer a close frame, in ms. */
const CLOSE_WAIT_MS = 5_000
/** While so much waits for a client that does not read, its pings wait too; only the last one is answered. */
const MAX_PONG_BACKLOG_BYTES = 16 * 1024

/**
 * The client's end of a WebSocket, from the answer to its handshake on. Reads no more than the function takes, and writes no more
 * than the client takes: in each direction a window of {@link STREAM_WINDOW_BYTES} bytes, and besides it one message that has not
 * come as a whole.
 */
export class ClientWebSocket implements CallerSocket, Pinged {
  readonly #parts: WebSocketParts
  readonly #socket: Socket
  readonly #peer: WebSocketPeer
  readonly #holder: Holder
  readonly #decoder: FrameDecoder
  readonly #decodeOn = (): void => this.#decode()
  readonly #uncork = (): void => this.#leave()
  readonly #onTaken = (): void => this.#taken()
  #readAtMs: number
  /** How much more the function takes. */
  #window = STREAM_WINDOW_BYTES
  /** The message that is on its way to the function, */
  #message: Uint8Array | undefined
  #kind: MessageKind = 'bytes'
  /** and how much of it has left. */
  #left = 0
  /** Decoding waits for its turn. */
  #isInTurn = false
  #held: Reservation | undefined
  #heldBytes = 0
  /** What was sent to the client and not reported as taken. */
  #owedBytes = 0
  /** The function has sent parts of a message, and not its last one. */
  #isWithinMessage = false
  #isCorked = false
  #isWatched = false
  /** The answer to the last ping, which waits until the client reads. */
  #pong: Buffer[] | undefined
  /** Nothing more of the client counts: its close frame came, it broke the protocol, or it has left. */
  #hasEnded = false
  /** It has ended the connection, behind what still waits. */
  #isLeaving = false
  /** What its close frame is answered with. */
  #answerCode: number = CLOSE_CODES.none
  #hasSentClose = false
  /** The function's end is over. */
  #isFinished = false

  constructor(socket: Socket, holder: Holder, peer: WebSocketPeer, parts: WebSocketParts) {
    this.#parts = parts
    this.#socket = socket
    this.#holder = holder
    this.#peer = peer
    this.#readAtMs = parts.clock()
    this.#decoder = new FrameDecoder(
      {
        message: (kind, payload) => this.#messageCame(kind, payload),
        ping: (payload) => this.#answerPing(payload),
        closed: (code, reason) => this.#closeCame(code, reason),
        broken: (code, why) => this.#broken(code, why),
      },
      parts.maxMessageBytes,
    )
    parts.pings.add(this)
    socket
      .on('data', (chunk: Buffer) => this.#read(chunk))
      .on('end', () => this.#clientEnded())
      .on('error', () => socket.destroy())
      .on('close', () => this.#socketClosed())
  }

  /** Begins to read. @param head what came behind the handshake */
  open(head: Buffer): void {
    if (head.length > 0) this.#read(head)
    if (!this.#decoder.isBusy) this.#socket.resume()
  }

  // What comes from the function.

  /** Sends a message of the function, or a part of one, as a frame. */
  send(kind: MessageKind, bytes: Uint8Array, more: boolean): void {
    if (this.#hasSentClose || this.#socket.destroyed) return
    this.#owedBytes += bytes.length + (more ? 0 : STREAM_MESSAGE_BYTES)
    // A host may send what it likes.
    if (this.#owedBytes > STREAM_WINDOW_BYTES) return void this.#socket.destroy()
    this.#write(frameOf(this.#isWithinMessage ? OPCODES.continuation : OPCODES[kind], bytes, !more))
    this.#isWithinMessage = more
  }

  /** The function has taken so much of what the client sent. */
  credited(bytes: number): void {
    this.#window = Math.min(STREAM_WINDOW_BYTES, this.#window + bytes)
    if (this.#message === undefined) return
    this.#pass()
    this.#goOn()
  }

  /** Begins to close, unless that has begun: the client has {@link CLOSE_WAIT_MS} to answer. */
  close(code: number, reason: string): void {
    if (this.#hasSentClose || this.#socket.destroyed) return
    this.#write(closeFrame(code, reason))
    this.#hasSentClose = true
    let endsAtMs = this.#parts.clock() + CLOSE_WAIT_MS
    this.#parts.sweep.add((nowMs) => {
      // The frame waits behind messages that the client is still to take.
      if (this.#socket.writableLength > 0) endsAtMs = nowMs + CLOSE_WAIT_MS
      else if (nowMs >= endsAtMs) this.#socket.destroy()
      return this.#socket.destroyed
    })
  }

  /** The function's end is over, and on record: answers the client's close frame, or closes if none came. */
  finish(code: number, reason: string): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#message = undefined
    if (this.#hasEnded) {
      this.close(this.#answerCode, '')
      return this.#end()
    }
    this.close(code, reason)
    this.#goOn()
  }

  // What comes from the client.

  #read(chunk: Buffer): void {
    this.#readAtMs = this.#parts.clock()
    if (this.#hasEnded) return
    this.#decoder.push(chunk)
    this.#decode()
    if (this.#decoder.isBusy) this.#socket.pause()
  }

  #decode(): void {
    this.#isInTurn = false
    for (let step = 0; step < STEPS && this.#decoder.isBusy; step++) {
      // It waits for the function.
      if (this.#message !== undefined) break
      this.#decoder.step()
    }
    this.#hold()
    this.#goOn()
  }

  /** Decodes the rest in a later turn, or reads on. */
  #goOn(): void {
    if (this.#isInTurn || this.#message !== undefined) return
    if (this.#decoder.isBusy) {
      this.#isInTurn = true
      this.#parts.turns.enter(this.#holder, this.#decodeOn)
    } else if (this.#isLeaving) this.#clientEnded()
    else if (this.#socket.isPaused()) this.#socket.resume()
  }

  /** Counts what is in memory of messages that have not come as a whole, or wait for the function. */
  #hold(): void {
    const bytes = this.#decoder.heldBytes + (this.#message?.length ?? 0)
    if (bytes === 0) {
      this.#held?.release()
      this.#held = undefined
    } else {
      this.#held ??= this.#parts.budget.open(() => this.#cut())
      this.#held.add(bytes - this.#heldBytes)
    }
    this.#heldBytes = bytes
  }

  #messageCame(kind: MessageKind, payload: Uint8Array): void {
    if (this.#isFinished) return
    this.#kind = kind
    this.#message = payload
    this.#left = 0
    this.#pass()
  }

  /** Passes on what the window has room for. */
  #pass(): void {
    const message = this.#message
    if (message === undefined) return
    const { length } = message
    while (this.#window > STREAM_MESSAGE_BYTES) {
      const end = Math.min(length, this.#left + STREAM_PART_BYTES, this.#left + this.#window - STREAM_MESSAGE_BYTES)
      const more = end < length
      const part = message.subarray(this.#left, end)
      this.#left = end
      this.#window -= part.length + (more ? 0 : STREAM_MESSAGE_BYTES)
      if (!more) this.#message = undefined
      this.#peer.part(this.#kind, part, more)
      if (!more) return
    }
  }

  #answerPing(payload: Uint8Array): void {
    const frame = frameOf(OPCODES.pong, payload)
    if (this.#socket.writableLength > MAX_PONG_BACKLOG_BYTES) this.#pong = frame
    else if (!this.#hasSentClose) this.#write(frame)
  }

  #closeCame(code: number, reason: string): void {
    this.#hasEnded = true
    this.#answerCode = code
    if (this.#isFinished) this.#end()
    else this.#peer.closed(code, reason)
  }

  #broken(code: number, why: string): void {
    this.close(code, why)
    this.#lose()
  }

  /** More is held for clients than there may be, and for this one for the longest time. */
  #cut(): void {
    this.#decoder.stop()
    this.#message = undefined
    this.#broken(CLOSE_CODES.tryAgain, 'The server holds too much for its clients.')
  }

  #clientEnded(): void {
    // A stream that is paused tells of its end all the same: what came before it goes first.
    this.#isLeaving = !this.#hasEnded && (this.#message !== undefined || this.#decoder.isBusy)
    if (this.#isLeaving) return
    this.#lose()
    this.#socket.destroySoon()
  }

  #socketClosed(): void {
    this.#lose()
    this.#decoder.stop()
    this.#message = undefined
    this.#held?.release()
    this.#parts.pings.remove(this)
  }

  #lose(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    if (!this.#isFinished) this.#peer.lost()
  }

  get readAtMs(): number {
    // While the function takes nothing, nothing is read: that is not the client's silence.
    return this.#socket.isPaused() ? this.#parts.clock() : this.#readAtMs
  }

  ping(): void {
    if (!this.#hasSentClose) this.#write(frameOf(OPCODES.ping, NO_BYTES))
  }

  drop(): void {
    this.#socket.destroy()
  }

  // What leaves.

  #write(frame: readonly Buffer[]): void {
    const socket = this.#socket
    if (!this.#isCorked) {
      this.#isCorked = true
      // What is sent in one turn leaves as one.
      socket.cork()
      queueMicrotask(this.#uncork)
    }
    for (const piece of frame) socket.write(piece, this.#onTaken)
  }

  #leave(): void {
    this.#isCorked = false
    this.#socket.uncork()
    if (this.#socket.writableLength > 0) this.#watch()
  }

  #taken(): void {
    const socket = this.#socket
    const waiting = socket.writableLength
    const takenBytes = this.#owedBytes - waiting
    if (takenBytes >= CREDIT_BYTES && !this.#isFinished) {
      this.#owedBytes -= takenBytes
      this.#peer.credit(takenBytes)
    }
    const pong = this.#pong
    if (pong === undefined || waiting > 0) return
    this.#pong = undefined
    if (!this.#hasSentClose) this.#write(pong)
  }

  /** Closes the connection if its client stops reading. */
  #watch(): void {
    if (this.#isWatched) return
    this.#isWatched = true
    const { sweep, budget, clock, stallMs } = this.#parts
    const socket = this.#socket
    const reservation = budget.open(() => socket.destroy())
    let waiting = 0
    let leftBytes = -1
    let progressAtMs = clock()
    sweep.add((nowMs) => {
      reservation.add(socket.writableLength - waiting)
      waiting = socket.writableLength
      if (waiting === 0 || socket.destroyed) {
        this.#isWatched = false
        reservation.release()
        return true
      }
      const leftNow = socket.bytesWritten - waiting
      if (leftNow !== leftBytes) {
        leftBytes = leftNow
        progressAtMs = nowMs
      } else if (nowMs - progressAtMs >= stallMs) socket.destroy()
      return false
    })
  }

  /** Both close frames are there, or the client has left: the server closes first (RFC 6455, section 7.1.1). */
  #end(): void {
    this.#socket.end()
  }
}
