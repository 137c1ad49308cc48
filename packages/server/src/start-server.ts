import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AuditLog } from '@carpool/access'
import { Admission } from '@carpool/admission'
import { monotonicClock, type Call, type CarpoolError, type SandboxInfo } from '@carpool/core'
import { announceServer } from '@carpool/discovery'
import { Fleet, Machine } from '@carpool/fleet'
import { FunctionLogs } from '@carpool/function-logs'
import { createGateway, drain, type GatewayPhase } from '@carpool/gateway'
import { openLedger } from '@carpool/ledger'
import { Meter } from '@carpool/metering'
import { ServerMetrics } from '@carpool/metrics'
import { sandboxInfo, sandboxSentences } from '@carpool/sandbox'
import { pino } from 'pino'
import { createControlPlane } from './control-plane/control-plane.ts'
import { Deployer } from './deploy.ts'
import { egressOf } from './egress-of.ts'
import { EgressRelay, type FetchingRevision } from './egress-relay.ts'
import { FunctionJournal } from './function-journal.ts'
import { createHostListener } from './host-listener.ts'
import { fleetPolicy } from './fleet-policy.ts'
import { Hops } from './hops.ts'
import { hostProgram } from './host-program.ts'
import { hostPrograms } from './host-programs.ts'
import { openRequiredSandbox } from './host-sandbox.ts'
import { Invocations } from './invoke.ts'
import { KnownRevisions } from './known-revisions.ts'
import { closeWithin, listen, urlOf } from './listening.ts'
import { openData } from './open-data.ts'
import { requireAddon } from './required-addon.ts'
import { ServerStatus } from './server-status.ts'
import type { ServerSettings } from './settings.ts'
import { SourceMapper } from './source-mapper.ts'
import { UnclaimedEgress } from './unclaimed-egress.ts'
import { UsageJournal } from './usage-journal.ts'

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

/** The control plane is for this machine alone. */
const ADMIN_HOST = '127.0.0.1'
/** The control plane's requests are short. */
const CONTROL_GRACE_MS = 5_000
const VERSION = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version

/**
 * Starts the trusted process: builds its parts, joins them, and listens. Hosts start while it does.
 * @throws CarpoolError of a platform that Carpool does not run on, of a setting that cannot be met, or of data that cannot be used
 */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  const destination = pino.destination({ dest: 2, sync: true })
  // A log that cannot be written, as on a full disk, ends nothing.
  destination.on('error', () => {})
  const log = pino({ level: settings.logLevel }, destination)
  const onFault = (error: CarpoolError): void => log.error({ err: error.cause ?? error }, 'fault')
  requireAddon()
  // What only reads settings comes first: nothing has to be undone when one of them is wrong.
  const egress = egressOf(settings, log)
  const machine = new Machine()
  const policy = fleetPolicy(settings)
  const [programs, sandbox] = await Promise.all([hostPrograms(), openRequiredSandbox(settings, (problem) => log.warn(problem))])
  const program = hostProgram(settings, programs, sandbox.cage)
  const layers = Object.fromEntries(
    sandbox.layers.map(({ name, state, why }) => [name, state === 'on' ? state : `${state}: ${why}`]),
  )
  log.info({ layers }, 'sandbox of host processes')
  const sandboxFacts = sandboxInfo(sandbox.layers)

  const dataDir = resolve(settings.data)
  const { token, registry, access } = openData(dataDir, {
    registry: {
      codeCacheKey: `${process.versions.v8}-${process.arch}`,
      maxBundleBytes: settings.maxBundleBytes,
      onProblem: (problem) => log.warn(problem, 'stored data is not sound'),
    },
    access: {
      ...(settings.secretKeyFile !== '' && { secretKeyFile: resolve(settings.secretKeyFile) }),
      onProblem: (cause) => log.warn({ err: cause }, 'it cannot be written when tokens are used'),
    },
  })
  const { secrets } = access
  if (!secrets.isReadable)
    log.error('the secrets of functions cannot be read with this key: functions that have some do not load')
  const audit = new AuditLog(join(dataDir, 'audit.ndjson'), {
    clock: monotonicClock,
    onProblem: ({ lostEntries, cause }) => log.error({ lostEntries, err: cause }, 'the audit log cannot be written'),
  })
  const logs = new FunctionLogs(dataDir, { onProblem: (problem) => log.warn(problem, 'log lines were dropped') })
  const journal = new FunctionJournal(logs, new SourceMapper((revision) => registry.sourceMap(revision)), {
    redact: (revision, text) => secrets.redact(revision, text),
    hasLog: ({ functionName, owner }) => registry.ownerOf(functionName) === owner,
  })
  const ledger = await openLedger(dataDir, {
    retentionDays: settings.retentionDays,
    onProblem: ({ message, cause, lost }) => log.error({ err: cause, lost }, message),
  }).catch((cause: unknown) => {
    access.close()
    registry.close()
    throw cause
  })
  const metrics = new ServerMetrics({
    readFleet: () => status.readFleet(),
    readEgress: () => ({ ...egress.reading, ended: egress.verdicts }),
  })
  const meter = new Meter({
    write: (record, instanceUs, written) => {
      metrics.recorded(record)
      ledger.write(record, instanceUs, written)
    },
    hasRun: (revision) => ledger.hasRun(revision),
    onUnrecorded: (code) => metrics.shed(code),
    clock: monotonicClock,
  })
  const admission = new Admission({
    maxInFlight: settings.maxInFlight,
    maxPerOwner: settings.ownerConcurrency,
    ledgerUnavailable: () => ledger.unavailable,
  })
  const revisions = new KnownRevisions(registry)
  const usage = new UsageJournal({ revisions, ledger, metrics, now: Date.now })
  const unclaimed = new UnclaimedEgress((host, used) => usage.usedInBackground(host, used))
  const staged = new Map<string, FetchingRevision>()
  const hops = new Hops({ maxHops: settings.maxHops, onLoop: () => metrics.shed('loop-detected') })
  const relay = new EgressRelay({
    egress,
    revisionOf: (id) => revisions.find(id) ?? staged.get(id),
    headersFor: (source) => [['x-carpool-hops', hops.headerOf(source)]],
    onUnclaimed: (host, revision, bytes) => unclaimed.add(host, revision, bytes),
  })
  const fleet: Fleet = new Fleet({
    program,
    policy,
    machine,
    codeOf: async (revision) => ({ ...(await registry.code(revision)), secrets: secrets.of(revision) }),
    ownerOf: (functionName) => registry.ownerOf(functionName),
    isLive: ({ functionName, id }) => registry.find(functionName)?.id === id,
    isKeptWarm: (functionName) => settings.keepWarm.includes(functionName),
    keptWarm: () =>
      settings.keepWarm
        .map((name) => (registry.disabledInfo(name) === undefined ? registry.find(name) : undefined))
        .filter((revision) => revision !== undefined),
    calls: {
      placed: (call) => invocations.placed(call),
      answered: (call, result) => invocations.answered(call, result),
      refused: (call, error) => invocations.refused(call, error),
    },
    listener: createHostListener({
      revisions,
      journal,
      relay,
      usage,
      metrics,
      log,
      disable: (functionName, strikes) => {
        // It may have been deleted since.
        if (registry.ownerOf(functionName) === undefined) return
        try {
          registry.disable(functionName, { reason: `its code has harmed ${Math.round(strikes)} host processes` })
        } catch (cause) {
          // It stays disabled until the server ends: what cannot be is that it is remembered.
          log.error({ functionName, err: cause }, 'it cannot be written that the function is disabled')
        }
      },
    }),
  })
  const invocations = new Invocations({ registry, hops, admission, fleet, meter, journal })
  const ledgerUnavailable = (): string | undefined => ledger.unavailable
  const status = new ServerStatus({ version: VERSION, sandbox: sandboxFacts, fleet, admission, metrics, ledgerUnavailable })
  registry.onRouteChange(({ functionName, previous, current }) => {
    if (previous !== undefined) fleet.retire(previous.id)
    if (current !== undefined) return fleet.published(current)
    fleet.forget(functionName)
    logs.remove(functionName).catch((cause: unknown) => log.warn({ functionName, err: cause }, 'log not removed'))
  })

  const invoke = (call: Call): void => invocations.invoke(call)
  const deployer = new Deployer({ registry, fleet, secrets, staged, eraseLog: (functionName) => logs.remove(functionName) })
  let gatewayPhase: GatewayPhase = 'open'
  const gateway = createGateway({
    invoke,
    limits: settings,
    phase: () => gatewayPhase,
    onFault,
    onRefused: (code) => metrics.shed(code),
    isFunction: (functionName) => registry.find(functionName) !== undefined,
    hopsOf: (header) => hops.fromHeader(header),
  })
  const controlPlane = createControlPlane({
    version: VERSION,
    operatorToken: token,
    access,
    audit,
    registry,
    meter,
    logs,
    ledger,
    metrics,
    metricsAccess: settings.metricsAccess === 'token' ? 'token' : 'open',
    invoke,
    deploy: (functionName, owner, request) => deployer.deploy(functionName, owner, request),
    remove: (functionName, owner) => deployer.remove(functionName, owner),
    setSecret: (holder, key, value) => deployer.setSecret(holder, key, value),
    deleteSecret: (holder, key) => deployer.deleteSecret(holder, key),
    disable: (functionName, reason) => {
      try {
        registry.disable(functionName, { reason })
      } finally {
        // On a full disk it is in force, though not for longer than the server lives.
        fleet.disable(functionName)
      }
    },
    enable: (functionName) => {
      registry.enable(functionName)
      fleet.absolve(functionName)
    },
    isQuarantined: (functionName) => fleet.isQuarantined(functionName),
    serverInfo: () => ({
      version: VERSION,
      url: urlOf(gateway),
      adminUrl: urlOf(controlPlane),
      hosts: fleet.hosts,
      sandbox: sandboxFacts,
    }),
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
    unclaimed.close()
    await journal.settled()
    await logs.close()
    await ledger.close()
    await audit.flush()
    access.close()
    registry.close()
  }

  const ready = fleet.start().then(() => {
    if (status.phase === 'starting') status.phase = 'open'
    log.info({ hosts: fleet.hosts.length }, 'hosts are ready')
    log.info(sandboxSentences(sandboxFacts).join(' '))
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
    sandbox: sandboxFacts,
    ready,
    close: async () => {
      announcement.withdraw()
      await close()
    },
  }
}
