import type { AddressInfo } from 'node:net'
import { CarpoolError } from '@carpool/core'
import type { FastifyInstance } from 'fastify'

/** Connections that may wait to be accepted: a burst above it loses a second each, until TCP tries again. The kernel may allow less. */
const BACKLOG = 4096

const IDLE_SWEEP_MS = 50

/** The control plane is for this machine alone. */
const ADMIN_HOST = '127.0.0.1'
/** Its requests are short. */
const CONTROL_GRACE_MS = 5_000

/** @throws CarpoolError `invalid-setting` if the address cannot be had; `flag` is the setting it came from */
export async function listen(app: FastifyInstance, host: string, port: number, flag: string): Promise<void> {
  try {
    await app.listen({ host, port, backlog: BACKLOG })
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'another program listens there' : (cause as Error).message
    throw new CarpoolError('invalid-setting', `${host}:${port} (${flag}) cannot be listened on: ${reason}.`, { cause })
  }
}

/** As {@link listen}, for a control plane. */
export function listenForControl(app: FastifyInstance, port: number, flag: string): Promise<void> {
  return listen(app, ADMIN_HOST, port, flag)
}

/** Where an application that listens is reached from this machine, without a slash at the end. */
export function urlOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo
  const isWildcard = address === '0.0.0.0' || address === '::'
  const host = isWildcard ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}

/** Stops listening, and waits for what is under way, but not for long; then connections are cut. */
export function closeControlPlane(app: FastifyInstance): Promise<void> {
  return closeWithin(CONTROL_GRACE_MS, app)
}

async function closeWithin(limitMs: number, app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), limitMs)
  // Connections that were busy when it began are kept alive by their clients once they are answered.
  const sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_SWEEP_MS)
  await app.close()
  clearTimeout(cut)
  clearInterval(sweep)
}
