import { MAX_BODY_CHARACTERS } from './load-order.ts'

/** What a load generator looks at of an answer. */
export interface Answer {
  readonly status: number
  readonly code?: string
  readonly id?: string
  readonly retryAfterSeconds?: number
  /** The server closes the connection after it. */
  readonly closes: boolean
  /** As much of it as is looked at, a character for each byte. */
  readonly body: string
}

const HEAD_END = '\r\n\r\n'

/**
 * Reads the answers of one connection, one at a time, from however many pieces they come in. It is much cheaper than node:http,
 * which would take the CPU that the server under test needs. Only answers that say their length are understood: Carpool's all
 * do.
 */
export class ResponseReader {
  #head = ''
  #answer: Omit<Answer, 'body'> | undefined
  #body = ''
  #bytesLeft = 0

  /** @returns the answer once its last byte is there @throws Error if it is none */
  read(bytes: Buffer): Answer | undefined {
    if (this.#answer === undefined) {
      const before = this.#head.length
      this.#head += bytes.toString('latin1')
      // The end may have begun in the piece before.
      const end = this.#head.indexOf(HEAD_END, Math.max(0, before - HEAD_END.length))
      if (end < 0) return undefined
      const head = this.#head.slice(0, end)
      this.#bytesLeft = bodyLength(head) + end + HEAD_END.length - this.#head.length
      this.#answer = parseHead(head)
      this.#body = this.#head.slice(end + HEAD_END.length, end + HEAD_END.length + MAX_BODY_CHARACTERS)
      this.#head = ''
    } else {
      this.#bytesLeft -= bytes.length
      this.#body += bytes.toString('latin1', 0, MAX_BODY_CHARACTERS - this.#body.length)
    }
    if (this.#bytesLeft > 0) return undefined
    if (this.#bytesLeft < 0) throw new Error('There is more than the answer.')
    const answer = this.#answer
    this.#answer = undefined
    return { ...answer, body: this.#body }
  }
}

function parseHead(head: string): Omit<Answer, 'body'> {
  const code = headerOf(head, 'x-carpool-error')
  const id = headerOf(head, 'x-carpool-invocation')
  const retryAfter = headerOf(head, 'retry-after')
  return {
    status: statusOf(head),
    ...(code !== undefined && { code }),
    ...(id !== undefined && { id }),
    ...(retryAfter !== undefined && { retryAfterSeconds: Number(retryAfter) }),
    closes: headerOf(head, 'connection')?.toLowerCase() === 'close',
  }
}

function statusOf(head: string): number {
  const status = /^HTTP\/1\.1 (\d{3})(?: |\r|$)/.exec(head)?.[1]
  if (status === undefined) throw new Error('The answer is not HTTP/1.1.')
  return Number(status)
}

function bodyLength(head: string): number {
  const status = statusOf(head)
  if (status === 204 || status === 304) return 0
  const length = Number(headerOf(head, 'content-length') ?? Number.NaN)
  if (!Number.isSafeInteger(length) || length < 0) throw new Error('The answer does not say its length.')
  return length
}

const PATTERNS = new Map(
  ['content-length', 'retry-after', 'connection', 'x-carpool-error', 'x-carpool-invocation'].map((name) => [
    name,
    new RegExp(`\\r\\n${name}: *([^\\r]*)`, 'i'),
  ]),
)

function headerOf(head: string, name: string): string | undefined {
  return PATTERNS.get(name)?.exec(head)?.[1]?.trim()
}
