import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { AuditLog } from '@carpool/access'
import { Admission } from '@carpool/admission'
import { monotonicClock, type Call, type CarpoolError, type DeployRequest, type Revision, type SandboxInfo } from '@carpool/core'
import { announceServer } from './discovery/announce-server.ts'
import { Fleet, Machine } from '@carpool/fleet'
import { FunctionLogs, ServerMetrics } from '@carpool/telemetry'
import { createGateway, drain, type GatewayPhase, type ServerGatewayOptions } from '@carpool/gateway'
import { openLedger, Meter } from '@carpool/ledger'
import { sandboxInfo, sandboxSentences } from '@carpool/sandbox'
import type { FastifyInstance } from 'fastify'
import { pino, type Logger } from 'pino'
import { createControlPlane } from './control-plane/control-plane.ts'
import type { ControlPlaneOptions } from './control-plane/control-plane-options.ts'
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
import { closeControlPlane, listen, listenForControl, urlOf } from './listening.ts'
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

const VERSION = (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version

/** Where what listens is reached, without a slash at the end. Asked for once it does. */
export interface ServerAddresses {
  readonly url: () => string
  readonly adminUrl: () => string
}

/** The trusted process before it listens anywhere: its parts, joined. */
export interface OpenServer {
  readonly log: Logger
  readonly dataDir: string
  /** The control plane's bearer token. */
  readonly token: string
  /** What stands around its host processes. */
  readonly sandbox: SandboxInfo
  /** Resolves when the hosts are ready; until then calls wait in the queue. Rejects if the server is closed before. */
  readonly ready: Promise<void>
  /** What a data plane for it is made with. */
  readonly gateway: ServerGatewayOptions
  createControlPlane(addresses: ServerAddresses): FastifyInstance
  /** As {@link Deployer.deploy}. */
  deploy(functionName: string, owner: string, request: DeployRequest): Promise<Revision>
  /** As {@link Deployer.remove}. */
  remove(functionName: string, owner: string): Promise<void>
  /** Calls that have no record yet. */
  readonly underWay: () => number
  /** From now on it drains, and its data planes do this with requests. */
  end(phase: Exclude<GatewayPhase, 'open'>): void
  /** Ends the host processes and closes what is on disk. Nothing may call it any more. */
  close(): Promise<void>
}

/**
 * Builds the parts of the trusted process, and joins them. Hosts start meanwhile.
 * @throws CarpoolError of a platform that Carpool does not run on, of a setting that cannot be met, or of data that cannot be used
 */
export async function openServer(settings: ServerSettings): Promise<OpenServer> {
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
  const program = hostProgram(settings, programs, sandbox)
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
    readEgress: () => ({ ...egress.reading, ended: egress.ended }),
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
  const gateway: ServerGatewayOptions = {
    invoke,
    limits: settings,
    phase: () => gatewayPhase,
    onFault,
    onRefused: (code) => metrics.shed(code),
    isFunction: (functionName) => registry.find(functionName) !== undefined,
    hopsOf: (header) => hops.fromHeader(header),
  }
  const controlPlane = {
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
      fleet.clearStrikes(functionName)
    },
    isQuarantined: (functionName) => fleet.isQuarantined(functionName),
    status: () => status.read(),
    maxBodyBytes: settings.maxBodyBytes,
    maxBundleBytes: settings.maxBundleBytes,
    onFault,
  } satisfies Omit<ControlPlaneOptions, 'serverInfo' | 'dataUrl'>

  const ready = fleet.start().then(() => {
    if (status.phase === 'starting') status.phase = 'open'
    log.info({ hosts: fleet.hosts.length }, 'hosts are ready')
    log.info(sandboxSentences(sandboxFacts).join(' '))
  })
  // Whoever does not wait for it must not be told by an unhandled rejection.
  ready.catch(() => {})
  return {
    log,
    dataDir,
    token,
    sandbox: sandboxFacts,
    ready,
    gateway,
    createControlPlane: ({ url, adminUrl }) => {
      const serverInfo = () => ({ version: VERSION, url: url(), adminUrl: adminUrl(), hosts: fleet.hosts, sandbox: sandboxFacts })
      return createControlPlane({ ...controlPlane, serverInfo, dataUrl: url })
    },
    deploy: controlPlane.deploy,
    remove: controlPlane.remove,
    underWay: () => meter.underWay,
    end: (phase) => {
      status.phase = 'draining'
      gatewayPhase = phase
    },
    close: async () => {
      await fleet.close()
      await egress.close()
      unclaimed.close()
      await journal.settled()
      await logs.close()
      await ledger.close()
      await audit.flush()
      access.close()
      registry.close()
    },
  }
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
