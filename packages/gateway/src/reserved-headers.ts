/** Headers that speak of one connection, not of the request or the response that it carries (RFC 9110, section 7.6.1). */
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
/** What a response says of its length follows from its body; the other two are the server's to say. */
const SERVER_HEADERS: ReadonlySet<string> = new Set(['content-length', 'date', 'server'])

/** Whether a request's header, named in lower case, is for the gateway alone: no caller's reaches a function. */
export function isReserved(name: string): boolean {
  return CONNECTION_HEADERS.has(name) || name.startsWith(OWN_PREFIX)
}

/** Whether a response's header, named in lower case, is for the gateway alone: no function's reaches a caller. */
export function isReservedInResponse(name: string): boolean {
  return SERVER_HEADERS.has(name) || isReserved(name)
}

const NONE: ReadonlySet<string> = new Set()

/**
 * The headers, in lower case, that the `Connection` header of a request says are for its own connection (RFC 9110, section 7.6.1): whoever passes the
 * request on leaves them out.
 */
export function namedByConnection(value: string | undefined): ReadonlySet<string> {
  // What almost all clients send names none.
  if (value === undefined || value === 'keep-alive' || value === 'close') return NONE
  return new Set(value.split(',').map((option) => option.trim().toLowerCase()))
}
