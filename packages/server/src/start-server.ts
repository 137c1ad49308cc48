import type { AddressInfo } from 'node:net'
import { CarpoolError, type SandboxInfo } from '@carpool/core'
import { createGateway, drain } from '@carpool/gateway'
import type { FastifyInstance } from 'fastify'
import { announceServer } from './discovery/announcements.ts'
import { collectGarbage, collectGarbageAtRest, countBuffersWithHeap } from './garbage.ts'
import { openServer, type OpenServer } from './open-server.ts'
import type { ServerSettings } from './settings/table.ts'

/** Connections that may wait to be accepted; the kernel may allow fewer. Those above it lose a second, until TCP tries again. */
const BACKLOG = 4096

const IDLE_SWEEP_MS = 50
/** So long after its hosts are ready, calls that waited for them have gone, in ms. */
const SETTLED_MS = 1000

/** The control plane is for this machine alone. */
const ADMIN_HOST = '127.0.0.1'
/** Its requests are short. */
const CONTROL_GRACE_MS = 5_000

export interface RunningServer {
  /** Address of the data plane, without a slash at the end. */
  readonly url: string
  readonly adminUrl: string
  /** The control plane's bearer token. */
  readonly token: string
  /** What stands around its host processes. */
  readonly sandbox: SandboxInfo
  /** Resolves when the hosts are ready; until then calls wait in the queue. Rejects if the server is closed before. */
  readonly ready: Promise<void>
  /** Stops taking requests, lets those in flight end, and ends the host processes. */
  close(): Promise<void>
}

/**
 * Starts the trusted process, and listens for calls and for the control plane. Hosts start while it does.
 * @throws CarpoolError of a platform that Carpool does not run on, a setting that cannot be met, or data that cannot be used
 */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  countBuffersWithHeap()
  const server = await openServer(settings)
  const { log, dataDir, token, sandbox, ready } = server
  const gateway = createGateway(server.gateway)
  let controlPlane: ListeningControlPlane | undefined
  let stopCollecting = (): void => {}
  const close = async (): Promise<void> => {
    stopCollecting()
    controlPlane?.withdraw()
    server.end('closing')
    await drain(gateway, { graceMs: settings.graceMs, onGraceOver: () => server.end('closed') })
    await controlPlane?.close()
    await server.close()
  }
  try {
    await listen(gateway, settings.host, settings.port, '--port')
    const url = urlOf(gateway)
    controlPlane = await listenForControl(server, { url, port: settings.adminPort, flag: '--admin-port' })
    const { adminUrl } = controlPlane
    log.info({ url, adminUrl, dataDir }, 'server listens')
    ready.then(
      () => {
        const timer = setTimeout(() => {
          collectGarbage()
          stopCollecting = collectGarbageAtRest()
        }, SETTLED_MS).unref()
        stopCollecting = () => clearTimeout(timer)
      },
      () => {},
    )
    return { url, adminUrl, token, sandbox, ready, close }
  } catch (cause) {
    await close()
    throw cause
  }
}

export interface ListeningControlPlane {
  /** Without a slash at the end. */
  readonly adminUrl: string
  /** The `carpool` command finds it no more. Doing so twice is harmless. */
  withdraw(): void
  /** Withdraws, stops listening, and waits for what is under way, but not for long; then connections are cut. */
  close(): Promise<void>
}

/**
 * Listens for the control plane of a server, on loopback alone, and lets the `carpool` command find it.
 * @param url where the data plane is reached, without a slash at the end
 * @param flag the setting that the port comes from
 * @throws CarpoolError `invalid-setting` if the port cannot be had
 */
export async function listenForControl(
  server: OpenServer,
  { url, port, flag }: { url: string; port: number; flag: string },
): Promise<ListeningControlPlane> {
  const app = server.createControlPlane({ url: () => url, adminUrl: () => urlOf(app) })
  await listen(app, ADMIN_HOST, port, flag)
  const adminUrl = urlOf(app)
  const { token, dataDir } = server
  const announcement = announceServer({ url, adminUrl, token, pid: process.pid, dataDir })
  const close = async (): Promise<void> => {
    announcement.withdraw()
    await closeWithin(CONTROL_GRACE_MS, app)
  }
  return { adminUrl, withdraw: () => announcement.withdraw(), close }
}

/** @throws CarpoolError `invalid-setting` if the address cannot be had; `flag` is the setting it came from */
async function listen(app: FastifyInstance, host: string, port: number, flag: string): Promise<void> {
  try {
    await app.listen({ host, port, backlog: BACKLOG })
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'another program listens there' : (cause as Error).message
    throw new CarpoolError('invalid-setting', `${host}:${port} (${flag}) cannot be listened on: ${reason}.`, { cause })
  }
}

/** Where an application that listens is reached from this machine, without a slash at the end. */
function urlOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo
  const isWildcard = address === '0.0.0.0' || address === '::'
  const host = isWildcard ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}

async function closeWithin(limitMs: number, app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), limitMs)
  // Connections that were busy when it began are kept alive by their clients once they are answered.
  const sweep = setInterval(() => app.server.closeIdleConnections(), IDLE_SWEEP_MS)
  await app.close()
  clearTimeout(cut)
  clearInterval(sweep)
}
