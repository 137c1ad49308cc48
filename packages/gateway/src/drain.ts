import { once } from 'node:events'
import { Server } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * What a gateway does with requests: it serves them; or it serves them and closes their connections, because it shuts down; or it refuses
 * them with `draining`, because its time is over.
 */
export type GatewayPhase = 'open' | 'closing' | 'closed'

export interface DrainOptions {
  /** Longest time from now until every connection is cut, in ms. */
  readonly graceMs: number
  /** Told when `graceMs` are over and requests are still under way, a moment before they are cut: the phase is `closed` from here on. */
  readonly onGraceOver?: () => void
}

/**
 * How long a connection without a request stays open, in ms. One that is closed at once takes requests with it that are already on their
 * way; after this time the client has had an answer that said `connection: close`, or has none to send.
 */
const LINGER_MS = 500
const IDLE_SWEEP_MS = 50
/** How long the refusals after the grace get to leave, in ms. */
const REFUSE_MS = 100

/**
 * Ends a gateway whose phase is `closing`: takes no new connections, serves what comes on those that are open, and resolves once they are
 * all gone. What is under way when the grace is over is cut.
 */
export async function drain(app: FastifyInstance, { graceMs, onGraceOver }: DrainOptions): Promise<void> {
  const { server } = app
  if (!server.listening) return app.close()
  const closed = once(server, 'close')
  // The HTTP server's own method, which Fastify calls, would close the idle connections at once.
  Server.prototype.close.call(server)
  const lingerEndsMs = performance.now() + LINGER_MS
  const sweep = setInterval(() => {
    if (performance.now() >= lingerEndsMs) server.closeIdleConnections()
  }, IDLE_SWEEP_MS)
  let cut: NodeJS.Timeout | undefined
  const graceOver = setTimeout(() => {
    onGraceOver?.()
    cut = setTimeout(() => server.closeAllConnections(), REFUSE_MS)
  }, graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(graceOver)
  clearTimeout(cut)
  await app.close()
}
