import { validateHeaderName, validateHeaderValue } from 'node:http'
import type { ResponseHead } from '@carpool/core'

const MAX_HEADERS = 200

/**
 * Reads the response head that a host sent. It comes from where user code ran, so nothing in it is taken on trust.
 * @returns the head, or what is wrong with it
 */
export function parseResponseHead(text: string): ResponseHead | string {
  let head: Partial<ResponseHead>
  try {
    head = JSON.parse(text)
  } catch {
    return 'The response head is not readable.'
  }
  const { status, headers } = head
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
  return { status, headers }
}
