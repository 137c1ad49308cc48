import { mkdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Admission } from '@carpool/admission'
import { CarpoolError, LIMIT_RANGES, monotonicClock } from '@carpool/core'
import { announceServer } from '@carpool/discovery'
import { createEgress } from '@carpool/egress'
import { Fleet } from '@carpool/fleet'
import { FunctionLogs } from '@carpool/function-logs'
import { createGateway } from '@carpool/gateway'
import { openLedger } from '@carpool/ledger'
import { Meter } from '@carpool/metering'
import { ServerMetrics } from '@carpool/metrics'
import { openRegistry, type Registry, type RegistryOptions } from '@carpool/registry'
import { bundleRuntime } from '@carpool/runtime'
import { pino } from 'pino'
import { loadAdminToken } from './admin-token.ts'
import { createControlPlane } from './control-plane/control-plane.ts'
import { Deployer } from './deploy.ts'
import { EgressRelay } from './egress-relay.ts'
import { FunctionJournal } from './function-journal.ts'
import { createHostListener } from './host-listener.ts'
import { hostProgram } from './host-program.ts'
import { createInvoke } from './invoke.ts'
import { KnownRevisions } from './known-revisions.ts'
import { closeWithin, listen, urlOf } from './listening.ts'
import type { ServerSettings } from './settings.ts'
import { SourceMapper } from './source-mapper.ts'
import { UsageJournal } from './usage-journal.ts'

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
const VERSION = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version

/**
 * Starts the trusted process: builds its parts, joins them, and listens.
 * @throws CarpoolError of a setting that cannot be met, or of data that cannot be used
 */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  const log = pino({ level: settings.logLevel }, pino.destination({ dest: 2, sync: true }))
  const onFault = (error: CarpoolError): void => log.error({ err: error.cause ?? error }, 'fault')
  // What only reads settings comes first: nothing has to be undone when one of them is wrong.
  const egress = createEgress({
    allow: settings.allowEgress,
    totalTimeoutMs: LIMIT_RANGES.wallMs.max,
    maxRequestBytes: settings.maxBodyBytes,
  })
  const program = hostProgram(settings, await bundleRuntime())

  const dataDir = resolve(settings.data)
  const { token, registry } = openData(dataDir, {
    codeCacheKey: `${process.versions.v8}-${process.arch}`,
    maxBundleBytes: settings.maxBundleBytes,
    onProblem: (problem) => log.warn(problem, 'stored data is not sound'),
  })
  const logs = new FunctionLogs(dataDir, { onProblem: (problem) => log.warn(problem, 'log lines were dropped') })
  const journal = new FunctionJournal(logs, new SourceMapper((revision) => registry.sourceMap(revision)))
  let underWay = (): number => 0
  const ledger = await openLedger(dataDir, {
    retentionDays: settings.retentionDays,
    underWay: () => underWay(),
    onProblem: ({ message, cause, lost }) => log.error({ err: cause, lost }, message),
  }).catch((cause: unknown) => {
    registry.close()
    throw cause
  })
  const metrics = new ServerMetrics()
  const meter = new Meter({
    write: (record, instanceUs) => {
      metrics.recorded(record)
      return ledger.write(record, instanceUs)
    },
    hasRun: (revision) => ledger.hasRun(revision),
    clock: monotonicClock,
    now: Date.now,
  })
  underWay = () => meter.underWay
  const admission = new Admission({ maxInFlight: settings.maxInFlight, ledgerUnavailable: () => ledger.unavailable })
  const relay = new EgressRelay(egress)
  const revisions = new KnownRevisions(registry)
  const usage = new UsageJournal({ revisions, ledger, metrics, now: Date.now })
  const fleet = new Fleet({
    program,
    hosts: settings.hosts,
    placeTimeoutMs: PLACE_TIMEOUT_MS,
    codeOf: (revision) => registry.code(revision),
    isLive: ({ functionName, id }) => registry.find(functionName)?.id === id,
    listener: createHostListener({ revisions, journal, relay, usage, log }),
  })
  registry.onRouteChange(({ functionName, previous, current }) => {
    if (previous !== undefined) fleet.retire(previous.id)
    if (current === undefined)
      logs.remove(functionName).catch((cause: unknown) => log.warn({ functionName, err: cause }, 'log not removed'))
  })

  let draining = false
  const invoke = createInvoke({ registry, admission, fleet, meter, journal })
  const deployer = new Deployer({ registry, fleet })
  const gateway = createGateway({ invoke, maxBodyBytes: settings.maxBodyBytes, isDraining: () => draining, onFault })
  const controlPlane = createControlPlane({
    token,
    registry,
    meter,
    logs,
    ledger,
    metrics,
    invoke,
    deploy: (functionName, request) => deployer.deploy(functionName, OWNER, request),
    remove: (functionName) => deployer.remove(functionName),
    serverInfo: () => ({ version: VERSION, url: urlOf(gateway), adminUrl: urlOf(controlPlane), hosts: fleet.hosts }),
    isReady: () => !draining && ledger.unavailable === undefined && fleet.hosts.some(({ state }) => state === 'ready'),
    dataUrl: () => urlOf(gateway),
    maxBodyBytes: settings.maxBodyBytes,
    maxBundleBytes: settings.maxBundleBytes,
    onFault,
  })
  const close = async (): Promise<void> => {
    draining = true
    await closeWithin(DRAIN_MS, gateway)
    await closeWithin(DRAIN_MS, controlPlane)
    await fleet.close()
    await egress.close()
    await journal.settled()
    await logs.close()
    await ledger.close()
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

/** @throws CarpoolError `data-unusable` if the folder cannot be made, read and written to */
function openData(dataDir: string, options: RegistryOptions): { token: string; registry: Registry } {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    return { token: loadAdminToken(dataDir), registry: openRegistry(dataDir, options) }
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (cause instanceof CarpoolError || code === undefined) throw cause
    throw new CarpoolError('data-unusable', `The data folder ${dataDir} (--data) cannot be used: ${code}.`, { cause })
  }
}
