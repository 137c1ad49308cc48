import type { FetchHead, HeaderList } from '@carpool/core'

/** Longest head, in UTF-16 units: far above what servers take. */
const MAX_HEAD_LENGTH = 1024 * 1024

/**
 * Reads the head of a fetch that a host sent. It comes from where user code ran, so nothing in it is taken on trust.
 * @returns the head, or what is wrong with it
 */
export function parseFetchHead(text: string): FetchHead | string {
  if (text.length > MAX_HEAD_LENGTH) {
    return `The URL and the headers of the request have ${text.length} characters; the limit is ${MAX_HEAD_LENGTH}.`
  }
  let head: unknown
  try {
    head = JSON.parse(text)
  } catch {
    return 'The head of the request is not readable.'
  }
  if (typeof head !== 'object' || head === null) return 'The head of the request is not readable.'
  const { method, url, headers, redirect } = head as Partial<Record<keyof FetchHead, unknown>>
  if (typeof method !== 'string' || typeof url !== 'string') return 'The method and the URL of a request must be texts.'
  if (!isHeaderList(headers)) return 'The headers of a request must be pairs of texts.'
  if (redirect !== 'follow' && redirect !== 'error' && redirect !== 'manual') {
    return 'The redirect mode of a request must be follow, error or manual.'
  }
  return { method, url, headers, redirect }
}

function isHeaderList(value: unknown): value is HeaderList {
  return Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2 && pair.every(isText))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
