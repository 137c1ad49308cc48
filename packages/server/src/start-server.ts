import type { SandboxInfo } from '@carpool/core'
import { createGateway, drain } from '@carpool/gateway'
import { announceServer } from './discovery/announcements.ts'
import { closeControlPlane, listen, listenForControl, urlOf } from './listening.ts'
import { openServer } from './open-server.ts'
import type { ServerSettings } from './settings/table.ts'

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
 * @throws CarpoolError of a platform that Carpool does not run on, of a setting that cannot be met, or of data that cannot be used
 */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  const server = await openServer(settings)
  const { log, dataDir, token, sandbox, ready } = server
  const gateway = createGateway(server.gateway)
  const controlPlane = server.createControlPlane({ url: () => urlOf(gateway), adminUrl: () => urlOf(controlPlane) })
  const close = async (): Promise<void> => {
    server.end('closing')
    await drain(gateway, { graceMs: settings.graceMs, onGraceOver: () => server.end('closed') })
    await closeControlPlane(controlPlane)
    await server.close()
  }
  try {
    await listen(gateway, settings.host, settings.port, '--port')
    await listenForControl(controlPlane, settings.adminPort, '--admin-port')
  } catch (cause) {
    await close()
    throw cause
  }
  const url = urlOf(gateway)
  const adminUrl = urlOf(controlPlane)
  const announcement = announceServer({ url, adminUrl, token, pid: process.pid, dataDir })
  log.info({ url, adminUrl, dataDir }, 'server listens')
  return {
    url,
    adminUrl,
    token,
    sandbox,
    ready,
    close: async () => {
      announcement.withdraw()
      await close()
    },
  }
}
