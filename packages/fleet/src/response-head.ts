import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { ResponseHead } from '@carpool/core'

const MAX_HEADERS = 200

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
    this.#read.set(text, head)
    return head
  }
}

/**
 * Reads the response head that a host sent. It comes from where user code ran, so nothing in it is taken on trust.
 * @returns the head, or what is wrong with it
 */
export function parseResponseHead(text: string): ResponseHead | string {
  let head: Partial<ResponseHead> | null
  try {
    head = JSON.parse(text)
  } catch {
    return 'The response head is not readable.'
  }
  const { status, headers } = head ?? {}
  if (!Number.isInteger(status) || status === undefined || status < 200 || status > 599) {
    return `The status of a response must be from 200 to 599, not ${JSON.stringify(status)?.slice(0, 40)}.`
  }
  if (!Array.isArray(headers) || headers.length > MAX_HEADERS) return `A response may have up to ${MAX_HEADERS} headers.`
  for (const header of headers) {
    if (!Array.isArray(header)) return 'A header must be a pair of name and value.'
    const [name, value] = header
    if (typeof name !== 'string' || typeof value !== 'string') return 'The name and the value of a header must be texts.'
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      return `The response header ${JSON.stringify(name.slice(0, 80))} is not valid.`
    }
  }
  return { status, headers: headers.map(([name, value]) => [name.toLowerCase(), value]) }
}
