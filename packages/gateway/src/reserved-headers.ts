/** Headers that speak of one connection, not of the request or the response that it carries. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])
const OWN_PREFIX = 'x-carpool-'

/** Whether a header, named in lower case, is for the gateway alone: no caller's reaches a function, and no function's reaches a caller. */
export function isReserved(name: string): boolean {
  return CONNECTION_HEADERS.has(name) || name.startsWith(OWN_PREFIX)
}
