import type { IncomingMessage } from 'node:http'
import { CarpoolError } from '@carpool/core'

const NO_BYTES = new Uint8Array(0)
/** First size of a buffer that chunks are copied into. */
const MIN_CAPACITY_BYTES = 4096

/** Whether a request has a body, as far as its headers say. */
export function hasBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true
  const length = headers['content-length']
  return length !== undefined && Number(length) > 0
}

/** @throws CarpoolError `body-too-large` if the request says beforehand that its body is */
export function checkBodyLength({ headers }: IncomingMessage, limitBytes: number): void {
  const length = Number(headers['content-length'] ?? 0)
  if (length > limitBytes) throw bodyTooLarge(`has ${length} bytes`, limitBytes)
}

export function bodyTooLarge(what: string, limitBytes: number): CarpoolError {
  return new CarpoolError('body-too-large', `The request body ${what}; the limit is ${limitBytes} bytes.`)
}

export interface RequestBodyOptions {
  readonly limitBytes: number
  /** So many bytes more are in memory. */
  readonly onBytes: (bytes: number) => void
}

/**
 * Reads the body of a request up to a limit. Bytes that come in a thousand chunks are copied together as they come: kept as they are, each
 * would take a hundred times its size.
 */
export class RequestBody {
  readonly #incoming: IncomingMessage
  readonly #options: RequestBodyOptions
  #bytes: Uint8Array = NO_BYTES
  #receivedBytes = 0
  #reject: ((error: CarpoolError) => void) | undefined

  constructor(incoming: IncomingMessage, options: RequestBodyOptions) {
    this.#incoming = incoming
    this.#options = options
  }

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  /** @throws CarpoolError `body-too-large`, `bad-request` if the client leaves before the end, or what {@link fail} was given */
  read(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      const left = (): void => {
        if (this.#reject === undefined) return
        this.fail(new CarpoolError('bad-request', 'The connection ended before the request body did.'))
      }
      this.#incoming
        .on('data', (chunk: Buffer) => this.#take(chunk))
        .on('end', () => {
          this.#reject = undefined
          resolve(this.#bytes.length === this.#receivedBytes ? this.#bytes : this.#bytes.subarray(0, this.#receivedBytes))
        })
        .on('error', left)
        .on('close', left)
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
    const { limitBytes, onBytes } = this.#options
    const needed = this.#receivedBytes + chunk.length
    if (needed > limitBytes) return this.fail(bodyTooLarge(`has ${needed} bytes or more`, limitBytes))
    if (this.#receivedBytes === 0) this.#bytes = chunk
    else {
      if (needed > this.#bytes.length) this.#grow(needed)
      this.#bytes.set(chunk, this.#receivedBytes)
    }
    this.#receivedBytes = needed
    onBytes(chunk.length)
  }

  #grow(neededBytes: number): void {
    const capacity = Math.min(this.#options.limitBytes, Math.max(neededBytes * 2, MIN_CAPACITY_BYTES))
    const larger = Buffer.allocUnsafeSlow(capacity)
    larger.set(this.#bytes.subarray(0, this.#receivedBytes))
    this.#bytes = larger
  }
}
