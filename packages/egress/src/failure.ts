import type { EgressLimits } from './limits.ts'

/** How a fetch ended, for counting. `refused`: policy forbids it, or a share is used up. */
export type FetchEnd = 'ok' | 'refused' | 'failed' | 'aborted'

/** The message for the function. It names the limit that was passed, and holds nothing of this machine. */
type Sentence = (host: string, limits: EgressLimits) => string

const REFUSED = {
  'address-refused': (host) => `The address of ${host} is not open to functions.`,
  'port-refused': (host) => `The port of ${host} is not open to functions.`,
  'host-not-listed': (host) => `${host} is not among the hosts that this function may fetch from ("egress" in its config).`,
  'stream-redirected': (host) => `${host} answered with a redirect, and a request body that streams cannot be sent again.`,
  'redirect-refused': (host) => `${host} answered with a redirect, and the fetch does not allow one.`,
  'waiting-full': (_host, { maxWaitingPerFunction }) =>
    `Too many fetches of this function wait; the limit is ${maxWaitingPerFunction}.`,
  'invocation-full': (_host, { maxFetchesPerInvocation }) =>
    `Too many fetches of this invocation are open; the limit is ${maxFetchesPerInvocation} at once.`,
  'memory-full': (_host, { maxMemoryBytes }) =>
    `The open fetches of this function take more memory than its share of the ${maxMemoryBytes} bytes for all functions.`,
} as const satisfies Record<string, Sentence>

const FAILED = {
  'request-broke-off': () => 'The body of the request broke off.',
  'idle': (host, { totalTimeoutMs }) => `${host} sent nothing for ${totalTimeoutMs} ms within the body of its response.`,
  'window-overrun': (host) => `More of the request body was sent to ${host} than there was room for.`,
  'aborted': () => 'The fetch was aborted.',
  'closed': () => 'The server is shutting down.',
  'interrupted': () => 'The server lost the fetch by a fault of its own; the request may have been sent.',
  'unavailable': () => 'The server can make no connections to the outside at the moment.',
  'timed-out': (host, { totalTimeoutMs }) => `${host} did not answer within the ${totalTimeoutMs} ms that the fetch had.`,
  'wait-timed-out': (host, { totalTimeoutMs }) =>
    `The fetch of ${host} had to wait for other fetches of this function until its ${totalTimeoutMs} ms were over.`,
  'connect-timed-out': (host, { connectTimeoutMs }) => `${host} did not accept the connection within ${connectTimeoutMs} ms.`,
  'head-timed-out': (host, { headTimeoutMs }) =>
    `${host} took longer than ${headTimeoutMs} ms to send the headers of its response.`,
  'handshake-too-large': (host, { maxHandshakeBytes }) =>
    `${host} sent more than ${maxHandshakeBytes} bytes before TLS was agreed on.`,
  'too-many-redirects': (_host, { maxRedirects }) => `There were too many redirects; the limit is ${maxRedirects}.`,
  'too-many-headers': (host, { maxHeaders }) => `The response of ${host} has too many headers; the limit is ${maxHeaders}.`,
  'too-many-interim': (host, { maxInterimResponses }) =>
    `${host} sent too many interim responses; the limit is ${maxInterimResponses}.`,
  'too-many-codings': (host, { maxCodings }) =>
    `The response of ${host} is compressed too many times over; the limit is ${maxCodings}.`,
  'too-much-framing': (host, { maxFramingBytes }) =>
    `The response of ${host} has more than ${maxFramingBytes} bytes besides its body.`,
  'response-too-large': (host, { maxResponseBytes }) =>
    `The response of ${host} is larger than the limit of ${maxResponseBytes} bytes.`,
  'decompressed-too-large': (host, { maxResponseBytes }) =>
    `The response of ${host}, decompressed, is larger than the limit of ${maxResponseBytes} bytes.`,
  'broken-off': closedBy,
  'undecodable': (host) => `The response of ${host} cannot be decompressed.`,
} as const satisfies Record<string, Sentence>

/** Failures of sockets alone; `socket-end.ts` has their sentences. */
type SocketFailureCode =
  | 'sockets-full'
  | 'tls-timed-out'
  | 'not-connected'
  | 'plain-before-tls'
  | 'handshake-refused'
  | 'no-close-frame'

export type FailureCode = keyof typeof REFUSED | keyof typeof FAILED | SocketFailureCode

const OWN_SENTENCES: Readonly<Record<string, Sentence>> = { ...REFUSED, ...FAILED }

/** By codes of Node, undici or the resolver. */
const FOREIGN_SENTENCES: Readonly<Record<string, Sentence>> = {
  ENOTFOUND: (host) => `The host name of ${host} is not known.`,
  EAI_AGAIN: (host) => `The host name of ${host} could not be resolved.`,
  ECONNREFUSED: (host) => `${host} refused the connection.`,
  ECONNRESET: closedBy,
  EPIPE: closedBy,
  UND_ERR_SOCKET: closedBy,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ETIMEDOUT: (host) => `${host} did not accept the connection in time.`,
  EMFILE: () => 'The server has too many connections open.',
  ENFILE: () => 'The server has too many connections open.',
  UND_ERR_HEADERS_OVERFLOW: (host, { maxHeaderBytes }) =>
    `The headers of the response of ${host} are larger than the limit of ${maxHeaderBytes} bytes.`,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: (host) => `The response of ${host} does not have the length that it announced.`,
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: () => 'The body of the request does not have the length that it announced.',
  UND_ERR_INVALID_ARG: () => 'The method or a header of the request is not valid.',
}

const TLS_CODE = /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/

/** An error that {@link describeFailure} knows by its code. */
export function failure(code: FailureCode, cause?: unknown): Error {
  return Object.assign(new Error(code, { cause }), { code })
}

export function isFailure(cause: unknown): boolean {
  return Object.hasOwn(OWN_SENTENCES, codeOf(cause))
}

export const REFUSAL = 'refusal'

/** An error for a request that is not carried out, with the message for the function. */
export function refusal(message: string): Error {
  return Object.assign(new Error(message), { code: REFUSAL })
}

/**
 * What a function may know of a failure. Built from the code alone: the messages of Node and undici hold addresses of this
 * machine.
 * @param host of the URL that was fetched last
 * @param limits those of this fetch
 */
export function describeFailure(cause: unknown, host: string, limits: EgressLimits): { end: FetchEnd; message: string } {
  const code = codeOf(cause)
  if (code === REFUSAL) return { end: 'refused', message: (cause as Error).message }
  const end = Object.hasOwn(REFUSED, code) ? 'refused' : code === 'aborted' ? 'aborted' : 'failed'
  return { end, message: sentenceOf(cause, code)(host, limits) }
}

/** The message for the function of a failure that is not about a host. */
export function failureSentence(code: 'aborted' | 'closed' | 'interrupted' | 'unavailable'): string {
  return FAILED[code]()
}

function sentenceOf(cause: unknown, code: string): Sentence {
  for (const sentences of [OWN_SENTENCES, FOREIGN_SENTENCES]) {
    const sentence = Object.hasOwn(sentences, code) ? sentences[code] : undefined
    if (sentence !== undefined) return sentence
  }
  // Its code depends on the fault that the parser found.
  if (cause instanceof Error && cause.name === 'HTTPParserError') return (host) => `${host} gave no valid HTTP response.`
  if (TLS_CODE.test(code)) return (host) => `The TLS connection to ${host} failed (${code}).`
  return (host) => `The fetch of ${host} failed.`
}

export function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

function closedBy(host: string): string {
  return `${host} closed the connection.`
}

function unreachable(host: string): string {
  return `${host} cannot be reached.`
}
