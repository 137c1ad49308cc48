import type { HeaderList } from './http.ts'

/** How a socket of a function speaks TLS. */
export interface TlsOptions {
  /** Name that the certificate must be for, and that is sent to the peer. Empty: that of the target. */
  readonly serverName: string
  /** `false`: any certificate is taken. */
  readonly isVerified: boolean
  /** Certificates in PEM form that are trusted instead of the usual ones. Absent: the usual ones. */
  readonly ca?: string
  /** Certificate and key, which is not encrypted, in PEM form by which the function proves who it is. Absent: none. */
  readonly cert?: string
  readonly key?: string
  /** Protocols offered by ALPN, best first. Empty: none. */
  readonly alpn: readonly string[]
}

/** What a function's socket connects to. */
export type SocketTarget =
  | {
      readonly kind: 'tcp'
      /** A name or an address. */
      readonly host: string
      readonly port: number
      /** Absent: no TLS, until it is asked for. */
      readonly tls?: TlsOptions
      /** Longest time to connect, with TLS, in ms. Absent: the server's. */
      readonly timeoutMs?: number
    }
  | { readonly kind: 'websocket'; readonly url: string; readonly protocols: readonly string[]; readonly headers: HeaderList }

/** What a function may know of its connected socket. */
export interface ConnectedSocket {
  readonly remoteAddress: string
  readonly remotePort: number
  /** Its TLS; absent: none. */
  readonly tls?: {
    readonly protocol: string
    readonly cipher: string
    readonly alpn: string | false
    readonly isAuthorized: boolean
    readonly authorizationError?: string
    /** The peer's certificate, DER in base64. */
    readonly certificate: string
  }
  /** Of a WebSocket: the subprotocol and extensions that the peer chose. */
  readonly protocol?: string
  readonly extensions?: string
}

/** How a socket ended. */
export type SocketEnd =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** As Node.js has it: `ECONNREFUSED`, `ECONNRESET`, `ETIMEDOUT`, `ENOTFOUND` … */
      readonly code: string
      /** For the function: holds nothing of this machine. */
      readonly message: string
    }
