import type { FetchHead, HeaderList } from '@carpool/core'
import { refusal } from './failure.ts'

/**
 * Reads the head of a fetch that a host sent. It comes from where user code ran, so nothing in it is taken on trust.
 * @throws refusal
 */
export function parseFetchHead(text: string, maxLength: number): FetchHead {
  if (text.length > maxLength) {
    throw refusal(`The URL and the headers of the request have ${text.length} characters; the limit is ${maxLength}.`)
  }
  let head: unknown
  try {
    head = JSON.parse(text)
  } catch {
    throw refusal('The head of the request is not readable.')
  }
  if (typeof head !== 'object' || head === null) throw refusal('The head of the request is not readable.')
  const { method, url, headers, redirect } = head as Partial<Record<keyof FetchHead, unknown>>
  if (typeof method !== 'string' || typeof url !== 'string') throw refusal('The method and the URL of a request must be texts.')
  if (!isHeaderList(headers)) throw refusal('The headers of a request must be pairs of texts.')
  if (redirect !== 'follow' && redirect !== 'error' && redirect !== 'manual') {
    throw refusal('The redirect mode of a request must be follow, error or manual.')
  }
  return { method, url, headers, redirect }
}

function isHeaderList(value: unknown): value is HeaderList {
  return Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isText))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
