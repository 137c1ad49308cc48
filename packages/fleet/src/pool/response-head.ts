import { MAX_RESPONSE_HEAD, RESPONSE_HEADER_LIMITS, type ResponseHead } from '@carpool/core'
import { validateHeaderName, validateHeaderValue } from '@carpool/core/node-http'

const { count: MAX_HEADERS, bytes: MAX_HEADER_BYTES } = RESPONSE_HEADER_LIMITS
const TOO_LARGE = `The response headers are too large; the limit is ${MAX_HEADER_BYTES} bytes.`

/** Heads kept read; those of one function mostly differ in nothing. */
const MAX_CACHED = 500
/** Longer heads are likely to hold what differs from answer to answer. */
const MAX_CACHED_LENGTH = 500

/** Reads response heads, and keeps what it has read. */
export class ResponseHeadReader {
  readonly #read = new Map<string, ResponseHead | string>()

  /** @see parseResponseHead */
  read(text: string): ResponseHead | string {
    const known = this.#read.get(text)
    if (known !== undefined) return known
    const head = parseResponseHead(text)
    if (text.length > MAX_CACHED_LENGTH) return head
    if (this.#read.size >= MAX_CACHED) this.#read.clear()
    // A copy: the text may be a piece of a whole frame's, which would be kept with it.
    this.#read.set(Buffer.from(text).toString(), head)
    return head
  }
}

/**
 * Reads the response head that a host sent. It comes from where user code ran, so nothing in it is taken on trust: whatever
 * passes can be written as it is, without moving the end of the response or beginning another one.
 * @returns the head, or what is wrong with it
 */
export function parseResponseHead(text: string): ResponseHead | string {
  if (text.length > MAX_RESPONSE_HEAD) return TOO_LARGE
  let head: Partial<ResponseHead> | null
  try {
    head = JSON.parse(text)
  } catch {
    return 'The response head is not readable.'
  }
  const { status, headers } = head ?? {}
  if (!Number.isInteger(status) || status === undefined || (status !== 101 && status < 200) || status > 599) {
    return `The status of a response must be from 200 to 599, or 101, not ${JSON.stringify(status)?.slice(0, 40)}.`
  }
  if (!Array.isArray(headers)) return 'The headers of a response must be a list.'
  if (headers.length > MAX_HEADERS) return `The response has ${headers.length} headers; the limit is ${MAX_HEADERS}.`
  const read: Array<readonly [string, string]> = []
  let bytes = 0
  for (const header of headers as readonly unknown[]) {
    if (!Array.isArray(header) || header.length !== 2) return 'A header must be a pair of name and value.'
    const [name, value] = header as readonly unknown[]
    if (typeof name !== 'string' || typeof value !== 'string') return 'The name and the value of a header must be texts.'
    bytes += name.length + value.length
    if (bytes > MAX_HEADER_BYTES) return TOO_LARGE
    if (!isValid(name, value)) return `The response header ${JSON.stringify(name.slice(0, 80))} is not valid.`
    read.push([name.toLowerCase(), value])
  }
  return { status, headers: read }
}

/** No line breaks, no control characters, and nothing that is no byte (RFC 9110, section 5). */
function isValid(name: string, value: string): boolean {
  try {
    validateHeaderName(name)
    validateHeaderValue(name, value)
    return true
  } catch {
    return false
  }
}
