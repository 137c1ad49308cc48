import type { IncomingMessage } from 'node:http'
import { CarpoolError, type Clock, type Holder } from '@carpool/core'
import type { ByteBudget, Reservation } from './byte-budget.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import type { ClientConnection } from './hardening/connections.ts'
import type { Sweep } from './hardening/slow-clients.ts'
import { RequestStream, type StreamingRequest } from './request-stream.ts'

type BodyLimits = Pick<GatewayLimits, 'maxBodyBytes' | 'bodyTimeoutMs' | 'bodyBytesPerSecond' | 'maxBufferedBytes'>

const NO_BYTES = new Uint8Array(0)
/** First size of a buffer that chunks are copied into. */
const MIN_CAPACITY_BYTES = 4096
/** Once this share of an announced body has come, there is memory for all of it. */
const TRUSTED_SHARE = 0.25

/** A body that is announced to be no larger is whole before its call begins. */
const MAX_WHOLE_BYTES = 64 * 1024

/** Turns of the event loop in which what came with a request is parsed, at most; more of a flood, and its body streams. */
const MAX_PARSE_TURNS = 64

/** Whether a request has a body, by its headers. */
export function hasBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  const length = headers['content-length']
  return length !== undefined && Number(length) > 0
}

/** How the body of a request comes into its call, by its headers: whole, streaming, or streaming unless it is whole at once. */
export function wayOfBody({ headers }: IncomingMessage): 'whole' | 'stream' | 'stream-unless-whole' {
  if (headers['transfer-encoding'] === undefined) return Number(headers['content-length']) > MAX_WHOLE_BYTES ? 'stream' : 'whole'
  // A client that waits to be told to go on sends nothing before.
  return headers.expect === undefined ? 'stream-unless-whole' : 'stream'
}

export interface BodyReaderOptions {
  readonly limits: BodyLimits
  readonly sweep: Sweep
  readonly budget: ByteBudget
  readonly clock: Clock
}

/** Reads request bodies within the limits on size, time and memory. */
export class BodyReader {
  readonly #options: BodyReaderOptions

  constructor(options: BodyReaderOptions) {
    this.#options = options
  }

  /**
   * Makes room for the body of a request: it counts until the reservation is released.
   * @throws CarpoolError `body-too-large` if the request announces that its body is
   */
  reserve(connection: ClientConnection, incoming: IncomingMessage): Reservation {
    const { limits, budget } = this.#options
    const length = Number(incoming.headers['content-length'] ?? 0)
    if (length > limits.maxBodyBytes) throw bodyTooLarge(`has ${length} bytes`, limits.maxBodyBytes)
    return budget.open(() => connection.body?.fail(tooManyBuffered(limits.maxBufferedBytes)))
  }

  /**
   * Waits for what came with the head of a request to be parsed.
   * @returns whether the body is whole
   * @throws CarpoolError `bad-request` if what came is none
   */
  async isWholeAtOnce(connection: ClientConnection, incoming: IncomingMessage): Promise<boolean> {
    const { socket } = connection
    for (let turn = 0; turn < MAX_PARSE_TURNS; turn++) {
      await new Promise((resolve) => setImmediate(resolve))
      if (connection.broken !== undefined) throw connection.broken
      if (incoming.complete) return true
      // Nothing of what came waits to be parsed, or nothing more is until the body is read.
      if (socket.readableLength === 0 || incoming.readableLength >= incoming.readableHighWaterMark) break
    }
    return false
  }

  /** @param onBroken told why the body broke off */
  stream(request: StreamingRequest, onBroken: (error: CarpoolError) => void): RequestStream {
    return new RequestStream(request, this.#options, onBroken)
  }

  /**
   * @param holder the function that the body is for: it gets a share of what the server holds
   * @throws CarpoolError `body-too-large`, `request-timeout`, `saturated`, `bad-request`
   */
  async read(
    connection: ClientConnection,
    incoming: IncomingMessage,
    reservation: Reservation,
    holder: Holder,
  ): Promise<Uint8Array> {
    const { maxBufferedBytes } = this.#options.limits
    // A body that came in one piece with the headers is parsed by the end of this turn.
    await Promise.resolve()
    if (connection.broken !== undefined) throw connection.broken
    if (!reservation.isOpen) throw tooManyBuffered(maxBufferedBytes)
    const bytes = incoming.complete ? this.#take(incoming, reservation) : await this.#collect(connection, incoming, reservation)
    if (!reservation.settle(holder)) throw tooManyBufferedFor(maxBufferedBytes)
    return bytes
  }

  #take(incoming: IncomingMessage, reservation: Reservation): Uint8Array {
    const { maxBodyBytes, maxBufferedBytes } = this.#options.limits
    const { readableLength } = incoming
    if (readableLength > maxBodyBytes) throw bodyTooLarge(`has ${readableLength} bytes`, maxBodyBytes)
    reservation.add(readableLength)
    if (!reservation.isOpen) throw tooManyBuffered(maxBufferedBytes)
    const first = incoming.read() as Buffer | null
    if (first === null || first.length === readableLength) return first ?? NO_BYTES
    // Each read may give one chunk.
    const chunks = [first]
    for (let chunk = incoming.read() as Buffer | null; chunk !== null; chunk = incoming.read() as Buffer | null)
      chunks.push(chunk)
    return Buffer.concat(chunks)
  }

  async #collect(connection: ClientConnection, incoming: IncomingMessage, reservation: Reservation): Promise<Uint8Array> {
    const { limits, sweep, clock } = this.#options
    const announcedBytes = Number(incoming.headers['content-length'] ?? 0)
    const body = new RequestBody(incoming, limits.maxBodyBytes, (bytes) => reservation.add(bytes), announcedBytes)
    connection.body = body
    const beganMs = clock()
    const check = (nowMs: number): boolean => {
      if (nowMs < beganMs + bodyTimeMs(body.receivedBytes, limits)) return false
      body.fail(tooSlow(body.receivedBytes, limits))
      return true
    }
    sweep.add(check)
    try {
      return await body.read()
    } finally {
      sweep.remove(check)
      // The next request may have come with the end of this one.
      if (connection.body === body) connection.body = undefined
    }
  }
}

/**
 * Reads the body of a request up to a limit. Chunks are copied together as they arrive: kept as they are, a thousand small ones
 * would each take a hundred times their size.
 */
export class RequestBody {
  readonly #incoming: IncomingMessage
  readonly #limitBytes: number
  readonly #onBytes: (bytes: number) => void
  readonly #announcedBytes: number
  #bytes: Uint8Array = NO_BYTES
  #receivedBytes = 0
  #reject: ((error: CarpoolError) => void) | undefined

  /**
   * @param onBytes so many bytes more are in memory
   * @param announcedBytes `content-length`, if there is one
   */
  constructor(incoming: IncomingMessage, limitBytes: number, onBytes: (bytes: number) => void, announcedBytes = 0) {
    this.#announcedBytes = announcedBytes
    this.#incoming = incoming
    this.#limitBytes = limitBytes
    this.#onBytes = onBytes
  }

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  /** @throws CarpoolError `body-too-large`, `bad-request` if the client leaves before the end, or what {@link fail} was given */
  read(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      const onLeft = (): void => {
        if (this.#reject === undefined) return
        this.fail(new CarpoolError('bad-request', 'The connection ended before the request body did.'))
      }
      this.#incoming
        .on('data', (chunk: Buffer) => this.#take(chunk))
        .on('end', () => {
          this.#reject = undefined
          resolve(this.#bytes.length === this.#receivedBytes ? this.#bytes : this.#bytes.subarray(0, this.#receivedBytes))
        })
        .on('error', onLeft)
        .on('close', onLeft)
    })
  }

  /** Reads no further. Does nothing once the body is whole. */
  fail(error: CarpoolError): void {
    const reject = this.#reject
    if (reject === undefined) return
    this.#reject = undefined
    this.#bytes = NO_BYTES
    this.#incoming.removeAllListeners('data').pause()
    reject(error)
  }

  #take(chunk: Buffer): void {
    const needed = this.#receivedBytes + chunk.length
    if (needed > this.#limitBytes) return this.fail(bodyTooLarge(`has ${needed} bytes or more`, this.#limitBytes))
    if (this.#receivedBytes === 0) this.#bytes = chunk
    else {
      if (needed > this.#bytes.length) this.#grow(needed)
      this.#bytes.set(chunk, this.#receivedBytes)
    }
    this.#receivedBytes = needed
    this.#onBytes(chunk.length)
  }

  #grow(neededBytes: number): void {
    const announcedBytes = this.#announcedBytes
    // To double and double again takes three times the memory of a large body, and has garbage collected that much sooner.
    // What was announced alone may never come.
    const isLikely = announcedBytes > neededBytes && neededBytes >= announcedBytes * TRUSTED_SHARE
    const wantedBytes = isLikely ? announcedBytes : neededBytes * 2
    const capacity = Math.min(this.#limitBytes, Math.max(wantedBytes, MIN_CAPACITY_BYTES))
    const larger = Buffer.allocUnsafeSlow(capacity)
    larger.set(this.#bytes.subarray(0, this.#receivedBytes))
    this.#bytes = larger
  }
}

/** How long a body of which so much has come may have taken, in ms: the rule of Apache's mod_reqtimeout with a `MinRate`. */
export function bodyTimeMs(receivedBytes: number, { bodyTimeoutMs, bodyBytesPerSecond }: BodyLimits): number {
  return bodyTimeoutMs + (receivedBytes / bodyBytesPerSecond) * 1000
}

function bodyTooLarge(what: string, limitBytes: number): CarpoolError {
  return new CarpoolError('body-too-large', `The request body ${what}; the limit is ${limitBytes} bytes.`)
}

export function tooSlow(receivedBytes: number, { bodyTimeoutMs, bodyBytesPerSecond }: BodyLimits): CarpoolError {
  return new CarpoolError(
    'request-timeout',
    `Of the request body ${receivedBytes} bytes arrived; the limit is ${bodyTimeoutMs} ms, and a second for each ${bodyBytesPerSecond} bytes.`,
  )
}

export function tooManyBuffered(limitBytes: number): CarpoolError {
  return new CarpoolError('saturated', `The limit for what the server holds for its clients is ${limitBytes} bytes.`)
}

function tooManyBufferedFor(limitBytes: number): CarpoolError {
  return new CarpoolError(
    'saturated',
    `The bodies of a function's calls under way may take half of what is free of the ${limitBytes} bytes that the server holds for its clients.`,
  )
}
