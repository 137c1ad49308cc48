import type { IncomingMessage } from 'node:http'
import { CarpoolError, type Clock } from '@carpool/core'
import type { ByteBudget, Holding } from './byte-budget.ts'
import type { ClientConnection } from './client-connection.ts'
import type { GatewayLimits } from './gateway-limits.ts'
import { bodyTooLarge, checkBodyLength, RequestBody } from './request-body.ts'
import type { Sweep } from './sweep.ts'

type BodyLimits = Pick<GatewayLimits, 'maxBodyBytes' | 'bodyTimeoutMs' | 'bodyBytesPerSecond' | 'maxBufferedBytes'>

const NO_BYTES = new Uint8Array(0)

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
   * Makes room for the body of a request: until that is released, the body counts.
   * @throws CarpoolError `body-too-large` if the request says beforehand that its body is
   */
  reserve(connection: ClientConnection, incoming: IncomingMessage): Holding {
    const { limits, budget } = this.#options
    checkBodyLength(incoming, limits.maxBodyBytes)
    return budget.open(() => connection.body?.fail(tooManyBuffered(limits.maxBufferedBytes)))
  }

  /**
   * @param functionName the function that the body is for: of what the server holds it gets a share
   * @throws CarpoolError `body-too-large`, `request-timeout`, `saturated`, `bad-request`
   */
  async read(
    connection: ClientConnection,
    incoming: IncomingMessage,
    holding: Holding,
    functionName: string,
  ): Promise<Uint8Array> {
    const { maxBufferedBytes } = this.#options.limits
    // What came in one piece with the headers is parsed by the end of this turn.
    await Promise.resolve()
    if (connection.broken !== undefined) throw connection.broken
    if (!holding.isOpen) throw tooManyBuffered(maxBufferedBytes)
    const bytes = incoming.complete ? this.#take(incoming, holding) : await this.#collect(connection, incoming, holding)
    if (!holding.settle(functionName)) throw tooManyBufferedFor(maxBufferedBytes)
    return bytes
  }

  #take(incoming: IncomingMessage, holding: Holding): Uint8Array {
    const { maxBodyBytes, maxBufferedBytes } = this.#options.limits
    const { readableLength } = incoming
    if (readableLength > maxBodyBytes) throw bodyTooLarge(`has ${readableLength} bytes`, maxBodyBytes)
    holding.add(readableLength)
    if (!holding.isOpen) throw tooManyBuffered(maxBufferedBytes)
    return (incoming.read() as Buffer | null) ?? NO_BYTES
  }

  async #collect(connection: ClientConnection, incoming: IncomingMessage, holding: Holding): Promise<Uint8Array> {
    const { limits, sweep, clock } = this.#options
    const body = new RequestBody(incoming, { limitBytes: limits.maxBodyBytes, onBytes: (bytes) => holding.add(bytes) })
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
      connection.body = undefined
    }
  }
}

/** How long a body of which so much has come may have taken, in ms: the rule of Apache's mod_reqtimeout with a `MinRate`. */
function bodyTimeMs(receivedBytes: number, { bodyTimeoutMs, bodyBytesPerSecond }: BodyLimits): number {
  return bodyTimeoutMs + (receivedBytes / bodyBytesPerSecond) * 1000
}

function tooSlow(receivedBytes: number, { bodyTimeoutMs, bodyBytesPerSecond }: BodyLimits): CarpoolError {
  return new CarpoolError(
    'request-timeout',
    `Of the request body ${receivedBytes} bytes arrived; the limit is ${bodyTimeoutMs} ms, and a second for each ${bodyBytesPerSecond} bytes.`,
  )
}

function tooManyBuffered(limitBytes: number): CarpoolError {
  return new CarpoolError('saturated', `The limit for what the server holds for its clients is ${limitBytes} bytes.`)
}

function tooManyBufferedFor(limitBytes: number): CarpoolError {
  return new CarpoolError(
    'saturated',
    `The bodies of a function's calls under way may take half of what is free of the ${limitBytes} bytes that the server holds for its clients.`,
  )
}
