import type { ClientConnection } from './connections.ts'

/** How long the first two probes wait, in ms: most answers are there by then. */
const PATIENCE_MS = 10
const REPEAT_MS = 1000

/**
 * A client has closed its side of the connection: it may have left, or only have nothing more to send (RFC 9112, section 9.6;
 * `nc` does so). TCP tells the two apart only when something is sent: a client that left answers with a reset, which the next
 * write runs into. So the connection is probed with `100 Continue`, which a client must read past at any time (RFC 9110, section
 * 15.2), until all calls on it are answered or it is found closed. HTTP/1.0 has no `100 Continue`: such a client counts as
 * waiting.
 */
export function probeHalfOpen(connection: ClientConnection): void {
  const { socket } = connection
  let probes = 0
  const probe = (): void => {
    if (socket.destroyed || connection.isIdle) return
    const response = connection.nextResponse
    if (response !== undefined && !response.headersSent) {
      if (response.req.httpVersionMinor === 0) return
      response.writeContinue()
    }
    // The second probe comes soon: it is the one that fails if the first was answered with a reset.
    setTimeout(probe, ++probes === 1 ? PATIENCE_MS : REPEAT_MS)
  }
  setTimeout(probe, PATIENCE_MS)
}
