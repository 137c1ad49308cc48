import type { Socket } from 'node:net'
import { monotonicClock, RoundRobin, type Holder } from '@carpool/core'
import type { ByteBudget, Reservation } from '../byte-budget.ts'
import { groupOf } from './connections.ts'
import { readIntoBuffer } from './read-buffer.ts'
import { pauseReading } from './stop-reading.ts'

/** How long one turn of the event loop may parse what was read, and handle the requests in it, in ms. */
const TURN_MS = 5
/** The same while new connections come, and how long these may be accepted between two such turns, in ms: enough for forty. */
const SHORT_TURN_MS = 1
const ACCEPT_MS = 6
/** What is parsed at a time, in bytes. In chunks of a byte, that takes a millisecond. */
const PIECE_BYTES = 4096
/** Where the target of a request is looked for, in bytes. */
const TARGET_BYTES = 1024

const SPACE = 0x20

type Parse = (bytes: Buffer) => void

/** `_paused` is undocumented: so much of answers waits for the client that Node.js must not be given more requests. */
type HttpSocket = Socket & { readonly _paused?: boolean }

/** What is known of a connection. */
class Caller {
  readonly socket: HttpSocket
  /** The listener of Node.js for the bytes of the connection: gives them to its parser. */
  readonly parse: Parse
  readonly onData: Parse
  readonly resume: () => void
  /** Of its last request. */
  target = ''
  /** The function that it called last; undefined before its first request. */
  holder: Holder | undefined
  /** It is paused until its turn comes. */
  isWaiting = false
  /** It may go on for a piece, although others wait. */
  hasTurn = false
  /** Its bytes are not those of requests any more. */
  isReleased = false
  /** What it holds takes of the memory for clients; undefined if that is nothing. */
  reservation: Reservation | undefined
  heldBytes = 0

  constructor(socket: HttpSocket, read: (caller: Caller, bytes: Buffer) => void) {
    this.socket = socket
    this.parse = socket.listeners('data')[0] as Parse
    this.onData = (bytes) => read(this, bytes)
    this.resume = () => {
      this.isWaiting = false
      if (socket.destroyed) return
      this.hasTurn = true
      socket.resume()
    }
  }

  /** Node.js resumes it too: at the end of a request, and when it wants more of a body. */
  readonly stayPaused = (): void => {
    if (this.isWaiting) pauseReading(this.socket)
  }

  /** Gives bytes back to the stream of the connection, which is paused, or to whom it was released. */
  putBack(bytes: Buffer): void {
    this.socket.unshift(bytes)
    process.nextTick(this.#stopReading)
  }

  /** A stream that gets bytes back reads more, also if it is paused. */
  readonly #stopReading = (): void => {
    if (this.isWaiting || this.socket.isPaused()) pauseReading(this.socket)
  }
}

export interface ReadTurnsOptions {
  /** Whose function a request target calls; all targets that call none share one. */
  readonly holderOf: (target: string) => Holder
  /** Whether the target in the first bytes of a connection says whose turn it takes. Default: its address does. */
  readonly looksAhead?: boolean
  /** Of what is in memory of connections that wait. */
  readonly budget: ByteBudget
  /** Closes a connection whose part of that is needed for others. */
  readonly cut: (socket: Socket) => void
}

/**
 * Has connections take turns before what they sent is parsed, so that nobody waits for all of a flood. The event loop reads all
 * connections that have something before it does anything else: a call would wait until those of ten thousand other connections
 * are parsed and handled; and one read may hold ten thousand chunks of a body, or a thousand requests. So what is read is parsed
 * in pieces, for a bounded time in each turn of the event loop. What is left waits, and is not read further, for its turn by
 * round robin between the owners of the functions that the connections call, and then between their functions.
 *
 * The price is a call of JavaScript for each read, and a copy of each that waits or is longer than a piece: Node.js parses by
 * itself what nobody listens to.
 */
export class ReadTurns {
  readonly #options: ReadTurnsOptions
  readonly #callers = new Map<Socket, Caller>()
  /** Since it was looked at last. */
  #hasAccepted = false
  #turnMs = TURN_MS
  readonly #turns = new RoundRobin({
    turnMs: () => this.#turnMs,
    clock: monotonicClock,
    nextTurn: (callback) => void setImmediate(() => this.#afterAccepts(callback, monotonicClock() + ACCEPT_MS)),
    // A connection that is resumed brings what it holds in the next tick.
    afterTask: (done) => process.nextTick(done),
  })

  constructor(options: ReadTurnsOptions) {
    this.#options = options
  }

  /** Whether connections wait for their turns. */
  get isBusy(): boolean {
    return this.#turns.isBusy
  }

  /** A connection that an HTTP server of Node.js has taken. */
  add(socket: Socket): void {
    this.#hasAccepted = true
    const caller = new Caller(socket, (one, bytes) => this.#read(one, bytes))
    this.#callers.set(socket, caller)
    const ofNode = ['pause', 'resume'].map((event) => [event, socket.listeners(event)[0] as () => void] as const)
    socket.off('data', caller.parse).on('data', caller.onData)
    readIntoBuffer(socket, (bytes) => this.#parseAtOnce(caller, bytes))
    // Node.js takes these away from whom somebody listens to. Without them, more is read of a connection that is paused.
    for (const [event, listener] of ofNode) socket.on(event, listener)
    socket.on('resume', caller.stayPaused).once('close', () => {
      caller.reservation?.release()
      this.#callers.delete(socket)
    })
  }

  /** A request was read. */
  requestRead(socket: Socket, target: string): void {
    const caller = this.#callers.get(socket)
    if (caller === undefined || caller.target === target) return
    caller.target = target
    caller.holder = this.#options.holderOf(target)
  }

  /** Another protocol begins on the connection: what else comes is for whoever listens to it. */
  release(socket: Socket): void {
    const caller = this.#callers.get(socket)
    if (caller === undefined) return
    caller.isReleased = true
    socket.off('data', caller.onData).off('resume', caller.stayPaused)
  }

  /**
   * libuv accepts one connection in each turn of the event loop (1.45 and later). One that stands behind a thousand new ones
   * would wait for a thousand turns, so these are short while there are some.
   */
  #afterAccepts(callback: () => void, endsAtMs: number): void {
    if (!this.#hasAccepted || monotonicClock() >= endsAtMs) {
      this.#turnMs = this.#hasAccepted ? SHORT_TURN_MS : TURN_MS
      return callback()
    }
    this.#hasAccepted = false
    setImmediate(() => this.#afterAccepts(callback, endsAtMs))
  }

  /** What nothing stands before need not go through the stream of its connection. @returns false if something does */
  #parseAtOnce(caller: Caller, bytes: Buffer): boolean {
    const { socket, isWaiting, isReleased } = caller
    if (isWaiting || isReleased || socket._paused === true || socket.isPaused() || socket.readableLength > 0) return false
    if (bytes.length > PIECE_BYTES || !this.#turns.isFree) return false
    caller.parse(bytes)
    return true
  }

  #read(caller: Caller, bytes: Buffer): void {
    const { socket } = caller
    // A stream that is resumed may bring what it holds before it says so, and before whoever keeps it paused hears of it.
    if (caller.isWaiting || socket._paused === true) {
      pauseReading(socket)
      return caller.putBack(bytes)
    }
    if (!caller.hasTurn && !this.#turns.isFree) return this.#wait(caller, bytes)
    caller.hasTurn = false
    if (bytes.length <= PIECE_BYTES) {
      this.#hold(caller, 0)
      return caller.parse(bytes)
    }
    caller.parse(bytes.subarray(0, PIECE_BYTES))
    if (socket.destroyed) return
    const rest = bytes.subarray(PIECE_BYTES)
    // Whoever has paused it has enough of a body, or of requests, and resumes it.
    if (!caller.isReleased && !socket.isPaused()) return this.#wait(caller, rest)
    caller.putBack(rest)
    this.#hold(caller, caller.isReleased ? 0 : rest.buffer.byteLength)
  }

  #wait(caller: Caller, bytes: Buffer): void {
    caller.isWaiting = true
    pauseReading(caller.socket)
    caller.putBack(bytes)
    this.#hold(caller, bytes.buffer.byteLength)
    this.#turns.enter(caller.holder ?? this.#newcomer(caller.socket, bytes), caller.resume)
  }

  /** Counts what a connection holds beyond a piece: all of what was read at once, as long as there is something of it. */
  #hold(caller: Caller, bytes: number): void {
    if (bytes <= PIECE_BYTES && caller.reservation === undefined) return
    const { budget, cut } = this.#options
    caller.reservation ??= budget.open(() => cut(caller.socket))
    caller.reservation.add(bytes - caller.heldBytes)
    caller.heldBytes = bytes
    if (bytes > 0) return
    caller.reservation.release()
    caller.reservation = undefined
  }

  /** Whose turn a connection takes before its first request: who floods with new ones lets no others wait. */
  #newcomer(socket: Socket, bytes: Buffer): Holder {
    const { holderOf, looksAhead = false } = this.#options
    const target = looksAhead ? targetIn(bytes) : undefined
    return target === undefined ? { owner: '', functionName: groupOf(socket.remoteAddress ?? '') } : holderOf(target)
  }
}

/** The target of the request that begins there; undefined if it is not whole. */
function targetIn(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, TARGET_BYTES)
  const start = head.indexOf(SPACE) + 1
  const end = head.indexOf(SPACE, start)
  return start > 0 && end >= 0 ? head.toString('latin1', start, end) : undefined
}
