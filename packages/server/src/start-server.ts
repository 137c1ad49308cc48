import { mkdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Admission } from '@carpool/admission'
import { CarpoolError, LIMIT_RANGES, monotonicClock } from '@carpool/core'
import { announceServer } from '@carpool/discovery'
import { createEgress } from '@carpool/egress'
import { Fleet, Machine } from '@carpool/fleet'
import { FunctionLogs } from '@carpool/function-logs'
import { createGateway, drain, type GatewayPhase } from '@carpool/gateway'
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
import { fleetPolicy } from './fleet-policy.ts'
import { hostProgram } from './host-program.ts'
import { createInvoke } from './invoke.ts'
import { KnownRevisions } from './known-revisions.ts'
import { closeWithin, listen, urlOf } from './listening.ts'
import { ServerStatus } from './server-status.ts'
import type { ServerSettings } from './settings.ts'
import { SourceMapper } from './source-mapper.ts'
import { UsageJournal } from './usage-journal.ts'

export interface RunningServer {
  /** Address of the data plane, without a slash at the end. */
  readonly url: string
  readonly adminUrl: string
  /** The control plane's bearer token. */
  readonly token: string
  /** Resolves when the hosts are ready; until then calls wait in the queue. Rejects if the server is closed before. */
  readonly ready: Promise<void>
  /** Stops taking requests, lets those in flight end, and ends the host processes. */
  close(): Promise<void>
}

/** The control plane is for this machine alone. */
const ADMIN_HOST = '127.0.0.1'
/** Who owns the functions, until there are owners. */
const OWNER = 'default'
/** The control plane's requests are short. */
const CONTROL_GRACE_MS = 5_000
const VERSION = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version

/**
 * Starts the trusted process: builds its parts, joins them, and listens. Hosts start while it does.
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
  const machine = new Machine()
  const policy = fleetPolicy(settings)
  const program = hostProgram(settings, { runtime: await bundleRuntime(), maxHosts: settings.maxHosts })

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
  const metrics = new ServerMetrics({ readFleet: () => status.readFleet() })
  const meter = new Meter({
    write: (record, instanceUs) => {
      metrics.recorded(record)
      return ledger.write(record, instanceUs)
    },
    hasRun: (revision) => ledger.hasRun(revision),
    onUnrecorded: (code) => metrics.shed(code),
    clock: monotonicClock,
    now: Date.now,
  })
  underWay = () => meter.underWay
  const admission = new Admission({
    maxInFlight: settings.maxInFlight,
    maxPerOwner: settings.ownerConcurrency,
    ledgerUnavailable: () => ledger.unavailable,
  })
  const relay = new EgressRelay(egress)
  const revisions = new KnownRevisions(registry)
  const usage = new UsageJournal({ revisions, ledger, metrics, now: Date.now })
  const fleet = new Fleet({
    program,
    policy,
    machine,
    codeOf: (revision) => registry.code(revision),
    isLive: ({ functionName, id }) => registry.find(functionName)?.id === id,
    isKeptWarm: (functionName) => settings.keepWarm.includes(functionName),
    keptWarm: () => settings.keepWarm.map((name) => registry.find(name)).filter((revision) => revision !== undefined),
    listener: createHostListener({ revisions, journal, relay, usage, metrics, log }),
  })
  const ledgerUnavailable = (): string | undefined => ledger.unavailable
  const status = new ServerStatus({ version: VERSION, fleet, admission, metrics, ledgerUnavailable })
  registry.onRouteChange(({ functionName, previous, current }) => {
    if (previous !== undefined) fleet.retire(previous.id)
    if (current !== undefined) return
    fleet.forget(functionName)
    logs.remove(functionName).catch((cause: unknown) => log.warn({ functionName, err: cause }, 'log not removed'))
  })

  const invoke = createInvoke({ registry, admission, fleet, meter, journal })
  const deployer = new Deployer({ registry, fleet })
  let gatewayPhase: GatewayPhase = 'open'
  const gateway = createGateway({ invoke, maxBodyBytes: settings.maxBodyBytes, phase: () => gatewayPhase, onFault })
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
    status: () => status.read(),
    dataUrl: () => urlOf(gateway),
    maxBodyBytes: settings.maxBodyBytes,
    maxBundleBytes: settings.maxBundleBytes,
    onFault,
  })
  const close = async (): Promise<void> => {
    status.phase = 'draining'
    gatewayPhase = 'closing'
    await drain(gateway, { graceMs: settings.graceMs, onGraceOver: () => (gatewayPhase = 'closed') })
    await closeWithin(CONTROL_GRACE_MS, controlPlane)
    await fleet.close()
    await egress.close()
    await journal.settled()
    await logs.close()
    await ledger.close()
    registry.close()
  }

  const ready = fleet.start().then(() => {
    if (status.phase === 'starting') status.phase = 'open'
    log.info({ hosts: fleet.hosts.length }, 'hosts are ready')
  })
  // Whoever does not wait for it must not be told by an unhandled rejection.
  ready.catch(() => {})
  try {
    await listen(gateway, settings.host, settings.port, '--port')
    await listen(controlPlane, ADMIN_HOST, settings.adminPort, '--admin-port')
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
    ready,
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
