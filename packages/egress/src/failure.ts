import { errors } from 'undici'

/** Failures that have a code of ours; the others have one of Node, of undici or of the TLS library. */
export type FailureCode =
  | 'address-refused'
  | 'aborted'
  | 'timed-out'
  | 'too-many-redirects'
  | 'response-too-large'
  | 'undecodable'
  | 'redirect-refused'

/** An error that {@link describeFailure} knows by its code. */
export function failure(code: FailureCode, cause?: unknown): Error {
  return Object.assign(new Error(code, { cause }), { code })
}

const SENTENCES: Readonly<Record<string, (host: string, limitBytes: number) => string>> = {
  'address-refused': (host) => `The address of ${host} is not open to functions.`,
  'aborted': () => 'The fetch was aborted.',
  'timed-out': (host) => `${host} did not answer in time.`,
  'too-many-redirects': () => 'There were too many redirects.',
  'redirect-refused': (host) => `${host} answered with a redirect, and the fetch does not allow one.`,
  'response-too-large': (host, limitBytes) => `The response of ${host} is larger than the limit of ${limitBytes} bytes.`,
  'undecodable': (host) => `The response of ${host} cannot be decompressed.`,
  'ENOTFOUND': (host) => `The host name of ${host} is not known.`,
  'EAI_AGAIN': (host) => `The host name of ${host} could not be resolved.`,
  'ECONNREFUSED': (host) => `${host} refused the connection.`,
  'ECONNRESET': (host) => `${host} closed the connection.`,
  'EPIPE': (host) => `${host} closed the connection.`,
  'UND_ERR_SOCKET': (host) => `${host} closed the connection.`,
  'EHOSTUNREACH': (host) => `${host} cannot be reached.`,
  'ENETUNREACH': (host) => `${host} cannot be reached.`,
  'ETIMEDOUT': (host) => `${host} did not accept the connection in time.`,
  'EMFILE': () => 'The server has too many connections open.',
  'UND_ERR_CONNECT_TIMEOUT': (host) => `${host} did not accept the connection in time.`,
  'UND_ERR_HEADERS_TIMEOUT': (host) => `${host} did not answer in time.`,
  'UND_ERR_BODY_TIMEOUT': (host) => `${host} did not answer in time.`,
  'UND_ERR_HEADERS_OVERFLOW': (host) => `The response of ${host} has too many headers.`,
  'UND_ERR_RES_EXCEEDED_MAX_SIZE': (host, limitBytes) =>
    `The response of ${host} is larger than the limit of ${limitBytes} bytes.`,
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH': (host) => `The response of ${host} does not have the length that it announced.`,
  'UND_ERR_INVALID_ARG': () => 'The method or a header of the request is not valid.',
  'UND_ERR_DESTROYED': () => 'The server is shutting down.',
  'UND_ERR_CLOSED': () => 'The server is shutting down.',
}

/**
 * What a function may know of a failure. It is built from the code alone: the messages of Node and undici hold addresses of this machine.
 * @param host of the URL that was fetched last
 */
export function describeFailure(cause: unknown, host: string, limitBytes: number): string {
  const code = codeOf(cause)
  if (Object.hasOwn(SENTENCES, code)) return SENTENCES[code]?.(host, limitBytes) ?? ''
  if (cause instanceof errors.HTTPParserError) return `${host} gave no valid HTTP response.`
  if (/^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/.test(code)) {
    return `The TLS connection to ${host} failed (${code}).`
  }
  return `The fetch of ${host} failed.`
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}
