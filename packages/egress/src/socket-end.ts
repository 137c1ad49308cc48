import type { SocketEnd } from '@carpool/core'
import type { EgressLimits } from './limits.ts'
import { codeOf, REFUSAL } from './failure.ts'

interface Described {
  /** For the function, as Node.js would have it. */
  readonly code: string
  readonly sentence: (host: string, limits: EgressLimits) => string
}

/** By own codes, and by those of Node and the resolver that are ends of sockets too. */
const ENDS: Readonly<Record<string, Described>> = {
  'address-refused': { code: 'EACCES', sentence: (host) => `The address of ${host} is not open to functions.` },
  'port-refused': { code: 'EACCES', sentence: (host) => `The port of ${host} is not open to functions.` },
  'host-not-listed': {
    code: 'EACCES',
    sentence: (host) => `${host} is not among the hosts that this function may connect to ("egress" in its config).`,
  },
  'sockets-full': {
    code: 'EMFILE',
    sentence: (_host, { maxSocketsPerFunction }) =>
      `Too many sockets of this function are open; the limit is ${maxSocketsPerFunction} at once.`,
  },
  'waiting-full': {
    code: 'EMFILE',
    sentence: (_host, { maxWaitingPerFunction }) =>
      `Too many connections of this function wait; the limit is ${maxWaitingPerFunction}.`,
  },
  'wait-timed-out': {
    code: 'ETIMEDOUT',
    sentence: (host) => `The connection to ${host} had to wait for other connections of this function until its time was over.`,
  },
  'timed-out': { code: 'ETIMEDOUT', sentence: (host) => `${host} did not accept the connection in time.` },
  'connect-timed-out': {
    code: 'ETIMEDOUT',
    sentence: (host, { connectTimeoutMs }) => `${host} did not accept the connection within ${connectTimeoutMs} ms.`,
  },
  'tls-timed-out': {
    code: 'ETIMEDOUT',
    sentence: (host, { connectTimeoutMs }) => `${host} did not agree on TLS within ${connectTimeoutMs} ms.`,
  },
  'handshake-too-large': {
    code: 'ERR_SSL_EXCESSIVE_MESSAGE_SIZE',
    sentence: (host, { maxHandshakeBytes }) => `${host} sent more than ${maxHandshakeBytes} bytes before TLS was agreed on.`,
  },
  'memory-full': {
    code: 'ENOBUFS',
    sentence: (_host, { maxMemoryBytes }) =>
      `The open fetches and sockets of this function take more memory than its share of the ${maxMemoryBytes} bytes for all functions.`,
  },
  'window-overrun': { code: 'EPROTO', sentence: (host) => `More was sent to ${host} than there was room for.` },
  'not-connected': { code: 'ENOTCONN', sentence: (host) => `The socket to ${host} cannot speak TLS at this point.` },
  'plain-before-tls': {
    code: 'ERR_SSL_WRONG_VERSION_NUMBER',
    sentence: (host) => `${host} sent bytes in the clear where TLS was to begin.`,
  },
  'handshake-refused': { code: 'EPROTO', sentence: (host) => `${host} did not accept the WebSocket.` },
  'no-close-frame': { code: 'ECONNRESET', sentence: (host) => `${host} closed the connection.` },
  'closed': { code: 'ECONNRESET', sentence: () => 'The server is shutting down.' },
  'interrupted': { code: 'ECONNRESET', sentence: () => 'The server lost the connection by a fault of its own.' },
  'unavailable': { code: 'EAGAIN', sentence: () => 'The server can make no connections to the outside at the moment.' },
  'ENOTFOUND': { code: 'ENOTFOUND', sentence: (host) => `getaddrinfo ENOTFOUND: the host name of ${host} is not known.` },
  'EAI_AGAIN': {
    code: 'EAI_AGAIN',
    sentence: (host) => `getaddrinfo EAI_AGAIN: the host name of ${host} could not be resolved.`,
  },
  'ECONNREFUSED': { code: 'ECONNREFUSED', sentence: (host) => `connect ECONNREFUSED ${host}` },
  'EHOSTUNREACH': { code: 'EHOSTUNREACH', sentence: (host) => `connect EHOSTUNREACH ${host}` },
  'ENETUNREACH': { code: 'ENETUNREACH', sentence: (host) => `connect ENETUNREACH ${host}` },
  'ETIMEDOUT': { code: 'ETIMEDOUT', sentence: (host) => `connect ETIMEDOUT ${host}` },
  'ECONNRESET': { code: 'ECONNRESET', sentence: (host) => `${host} closed the connection.` },
  'EPIPE': { code: 'EPIPE', sentence: (host) => `${host} closed the connection.` },
  'EMFILE': { code: 'EMFILE', sentence: () => 'The server has too many connections open.' },
  'ENFILE': { code: 'EMFILE', sentence: () => 'The server has too many connections open.' },
}

/** What Node says of a certificate is about the certificate alone, but for a hint how to start Node. */
const CERTIFICATE_CODE =
  /^(?:ERR_TLS_CERT_ALTNAME_\w+|CERT_\w+|CRL_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+|UNABLE_TO_\w+|HOSTNAME_MISMATCH|INVALID_\w+|PATH_LENGTH_EXCEEDED|ERROR_IN_\w+)$/
const OPENSSL_CODE = /^(?:ERR_SSL_|ERR_OSSL_|ERR_TLS_|ERR_CRYPTO_|EPROTO)[\w/-]{0,100}$/
/** The peer chooses the names in its certificate. */
const MAX_MESSAGE_LENGTH = 500

/**
 * What a function may know of why its socket ended. Messages of Node hold addresses and paths of this machine, so those are used
 * only where they are about the peer's certificate.
 * @param host that was connected to, with its port
 */
export function describeSocketEnd(cause: unknown, host: string, limits: EgressLimits): SocketEnd {
  const code = codeOf(cause)
  if (code === REFUSAL) return { ok: false, code: 'ERR_INVALID_ARG_VALUE', message: (cause as Error).message }
  const known = Object.hasOwn(ENDS, code) ? ENDS[code] : undefined
  if (known !== undefined) return { ok: false, code: known.code, message: known.sentence(host, limits) }
  const { message, reason } = cause as Error & { readonly reason?: unknown }
  if (CERTIFICATE_CODE.test(code)) return { ok: false, code, message: shown(message.split('; ', 1)[0] ?? message) }
  if (OPENSSL_CODE.test(code)) {
    const why = typeof reason === 'string' ? reason : code
    return { ok: false, code, message: shown(`The TLS connection to ${host} failed: ${why}`) }
  }
  if (code.startsWith('WS_ERR_') || code.startsWith('HPE_')) {
    return { ok: false, code: 'EPROTO', message: shown(`${host} broke the WebSocket protocol (${code}).`) }
  }
  return { ok: false, code: 'EIO', message: `The connection to ${host} failed.` }
}

function shown(message: string): string {
  return message.length <= MAX_MESSAGE_LENGTH ? message : `${message.slice(0, MAX_MESSAGE_LENGTH)}…`
}
