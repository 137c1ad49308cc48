import { mkdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { Admission } from '@carpool/admission'
import { CarpoolError, LIMIT_RANGES, type Revision } from '@carpool/core'
import { announceServer } from '@carpool/discovery'
import { createEgress } from '@carpool/egress'
import { Fleet } from '@carpool/fleet'
import { FunctionLogs } from '@carpool/function-logs'
import { createGateway } from '@carpool/gateway'
import { Meter } from '@carpool/metering'
import { openRegistry } from '@carpool/registry'
import { bundleRuntime } from '@carpool/runtime'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { loadAdminToken } from './admin-token.ts'
import { createControlPlane } from './control-plane/control-plane.ts'
import { deploy } from './deploy.ts'
import { EgressRelay } from './egress-relay.ts'
import { FunctionJournal } from './function-journal.ts'
import { hostProgram } from './host-program.ts'
import { createInvoke } from './invoke.ts'
import type { ServerSettings } from './settings.ts'
import { SourceMapper } from './source-mapper.ts'

export interface RunningServer {
  /** Address of the data plane, without a slash at the end. */
  readonly url: string
  readonly adminUrl: string
  /** The control plane's bearer token. */
  readonly token: string
  /** Stops taking requests, lets those in flight end, and ends the host processes. */
  close(): Promise<void>
}

/** The control plane is for this machine alone. */
const ADMIN_HOST = '127.0.0.1'
/** Who owns the functions, until there are owners. */
const OWNER = 'default'
/** Longest time that requests in flight get at shutdown: under the 30 s after which Kubernetes kills. */
const DRAIN_MS = 25_000
const PLACE_TIMEOUT_MS = 10_000
/** Connections that may wait to be accepted: a burst above it loses a second each, until TCP tries again. The kernel may allow less. */
const BACKLOG = 4096

/**
 * Starts the trusted process: builds its parts, joins them, and listens.
 * @throws CarpoolError of a setting that cannot be met
 */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  const dataDir = resolve(settings.data)
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const log = pino({ level: settings.logLevel }, pino.destination({ dest: 2, sync: true }))
  const token = loadAdminToken(dataDir)
  const onFault = (error: CarpoolError): void => log.error({ err: error.cause ?? error }, 'fault')

  const registry = openRegistry(dataDir, {
    codeCacheKey: `${process.versions.v8}-${process.arch}`,
    maxBundleBytes: settings.maxBundleBytes,
    onProblem: (problem) => log.warn(problem, 'stored data is not sound'),
  })
  const logs = new FunctionLogs(dataDir, { onProblem: (problem) => log.warn(problem, 'log lines were dropped') })
  const journal = new FunctionJournal(logs, new SourceMapper((revision) => registry.sourceMap(revision)))
  const egress = createEgress({ allow: settings.allowEgress, totalTimeoutMs: LIMIT_RANGES.wallMs.max })
  const relay = new EgressRelay(egress)
  const admission = new Admission({ maxInFlight: settings.maxInFlight })
  const meter = new Meter()

  const revisions = new Map<string, Revision>()
  for (const revision of registry.list()) revisions.set(revision.id, revision)
  const fleet = new Fleet({
    program: hostProgram(settings, await bundleRuntime()),
    hosts: settings.hosts,
    placeTimeoutMs: PLACE_TIMEOUT_MS,
    codeOf: (revision) => registry.code(revision),
    listener: {
      logged: ({ revision: id, level, id: invocationId }, text) => {
        const revision = revisions.get(id)
        if (revision !== undefined) journal.wrote(revision, level, text, invocationId)
      },
      fetchStarted: (host, fetch, head, body) => void relay.start(host, fetch, head, body),
      fetchStopped: (host, fetch) => relay.stop(host, fetch),
      complained: (host, line) => log.warn({ host: host.id, line }, 'host process wrote to stderr'),
      hostLost: (host, how, respawnInMs) => {
        relay.stopAll(host)
        log.error({ host: host.id, how, respawnInMs }, 'host process died; a new one takes its place')
      },
    },
  })
  registry.onRouteChange(({ functionName, previous, current }) => {
    if (current !== undefined) revisions.set(current.id, current)
    if (previous !== undefined) fleet.retire(previous.id)
    if (current === undefined) void logs.remove(functionName)
  })

  const invoke = createInvoke({ registry, admission, fleet, meter, journal })
  const gateway = createGateway({ invoke, maxBodyBytes: settings.maxBodyBytes, onFault })
  let draining = false
  const controlPlane = createControlPlane({
    token,
    registry,
    meter,
    logs,
    invoke,
    deploy: (functionName, request) => deploy({ registry, fleet }, functionName, OWNER, request),
    serverInfo: () => ({ version: packageVersion(), url: urlOf(gateway), adminUrl: urlOf(controlPlane), hosts: fleet.hosts }),
    isReady: () => !draining && fleet.hosts.some(({ state }) => state === 'ready'),
    dataUrl: () => urlOf(gateway),
    maxBodyBytes: settings.maxBodyBytes,
    maxBundleBytes: settings.maxBundleBytes,
    onFault,
  })

  const close = async (): Promise<void> => {
    draining = true
    await within(DRAIN_MS, gateway.close())
    await within(DRAIN_MS, controlPlane.close())
    fleet.close()
    await egress.close()
    await logs.close()
    registry.close()
  }

  try {
    await fleet.start()
    await listen(gateway, settings.host, settings.port, '--port')
    await listen(controlPlane, ADMIN_HOST, settings.adminPort, '--admin-port')
  } catch (cause) {
    await close()
    throw cause
  }
  const url = urlOf(gateway)
  const adminUrl = urlOf(controlPlane)
  const announcement = announceServer({ url, adminUrl, token, pid: process.pid, dataDir })
  log.info({ url, adminUrl, dataDir }, 'server is ready')

  return {
    url,
    adminUrl,
    token,
    close: async () => {
      announcement.withdraw()
      await close()
    },
  }
}

/** @throws CarpoolError `invalid-setting` if the address cannot be had */
async function listen(app: FastifyInstance, host: string, port: number, flag: string): Promise<void> {
  try {
    await app.listen({ host, port, backlog: BACKLOG })
  } catch (cause) {
    const reason =
      (cause as NodeJS.ErrnoException).code === 'EADDRINUSE' ? 'another program listens there' : (cause as Error).message
    throw new CarpoolError('invalid-setting', `${host}:${port} (${flag}) cannot be listened on: ${reason}.`, { cause })
  }
}

function urlOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo
  const wildcard = address === '0.0.0.0' || address === '::'
  const host = wildcard ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address
  return `http://${host}:${port}`
}

async function within(limitMs: number, work: PromiseLike<unknown>): Promise<void> {
  const limit = Promise.withResolvers<void>()
  const timer = setTimeout(limit.resolve, limitMs)
  await Promise.race([work, limit.promise])
  clearTimeout(timer)
}

function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  return version
}
