import type { Clock } from '@carpool/core'
import type { ClientConnection } from './client-connection.ts'
import type { Sweep } from './sweep.ts'

/** How long an answer may take without a question, in ms: most are there by then. */
const PATIENCE_MS = 10
/** From the second question on, in ms. */
const REPEAT_MS = 1000

/**
 * A client has ended its side of the connection: it may have left, or only have nothing more to send (RFC 9112, section 9.6; `nc` does so).
 * TCP tells the two apart only when something is sent: whoever left answers with a reset, which the next thing that is sent runs into. So
 * the connection is asked with `100 Continue`, which a client must read past at any time (RFC 9110, section 15.2), until it is answered or
 * found closed. A client that speaks HTTP/1.0 may not be sent that, and counts as waiting.
 */
export function askWhoIsThere(connection: ClientConnection, sweep: Sweep, clock: Clock): void {
  const { socket } = connection
  /** @returns whether there is nobody to ask any more */
  const ask = (): boolean => {
    if (socket.destroyed || connection.isIdle) return true
    const response = connection.nextResponse
    if (response === undefined || response.headersSent) return false
    if (response.req.httpVersionMinor === 0) return true
    response.writeContinue()
    return false
  }
  let askAtMs = clock() + REPEAT_MS
  const askAgain = (): void =>
    sweep.add((nowMs) => {
      if (socket.destroyed || connection.isIdle) return true
      if (nowMs < askAtMs) return false
      askAtMs = nowMs + REPEAT_MS
      return ask()
    })
  // The second question comes soon: it is the one that fails if the first was answered with a reset.
  const askTwice = (): void => {
    if (!ask()) setTimeout(() => void (ask() || askAgain()), PATIENCE_MS).unref()
  }
  setTimeout(askTwice, PATIENCE_MS).unref()
}
