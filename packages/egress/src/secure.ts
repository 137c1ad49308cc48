import type { Socket } from 'node:net'
import { connect as connectTls, type ConnectionOptions, type SecureContext, type TLSSocket } from 'node:tls'
import type { Holder } from '@carpool/core'
import { HandshakeGate, type HandshakeGateParts } from './handshake-gate.ts'

type Pass = Pick<ConnectionOptions, 'host' | 'servername' | 'rejectUnauthorized' | 'ALPNProtocols' | 'secureContext'>

export interface SecureOptions extends Pass {
  readonly holder: Holder
  /** Default: it ends when the peer has ended. */
  readonly allowHalfOpen?: boolean
}

/**
 * Speaks TLS over a connection, which may still connect.
 * @throws if the server name is none
 */
export type Secure = (raw: Socket, options: SecureOptions) => TLSSocket

export interface SecureParts extends Omit<HandshakeGateParts, 'holder'> {
  /** For connections that have none. */
  readonly commonContext: () => SecureContext
}

/** All TLS of functions begins here. */
export function createSecure({ commonContext, ...parts }: SecureParts): Secure {
  return (raw, { holder, allowHalfOpen = false, ...options }) => {
    const gate = new HandshakeGate(raw, { ...parts, holder })
    try {
      const socket = connectTls({ secureContext: commonContext(), ...options, socket: gate })
      // It would be as that of the gate, which is open until the last record of TLS has left.
      socket.allowHalfOpen = allowHalfOpen
      return socket.once('secureConnect', () => gate.open())
    } catch (cause) {
      gate.destroy()
      throw cause
    }
  }
}
