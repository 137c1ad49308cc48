import { readFileSync } from 'node:fs'
import type { CarpoolError, DeployRequest, Revision, SandboxInfo } from '@carpool/core'
import type { GatewayPhase, ServerGatewayOptions } from '@carpool/gateway'
import { sandboxSentences } from '@carpool/sandbox'
import type { FastifyInstance } from 'fastify'
import { pino, type Logger } from 'pino'
import type { ControlPlaneOptions } from './control-plane/control-plane-options.ts'
import { createControlPlane } from './control-plane/control-plane.ts'
import { openEgress } from './host-reports/egress-relay.ts'
import { requireAddon } from './hosts/host-files.ts'
import { prepareHosts } from './hosts/prepare-hosts.ts'
import { createServerParts, type ServerBase, type ServerParts } from './server-parts.ts'
import type { ServerSettings } from './settings/table.ts'
import { openStores } from './stores.ts'

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
 * Opens the stores, makes the parts, and starts the hosts; they are ready later.
 * @throws CarpoolError of a platform that Carpool does not run on, a setting that cannot be met, or data that cannot be used
 */
export async function openServer(settings: ServerSettings): Promise<OpenServer> {
  const log = openLog(settings)
  requireAddon()
  // What only reads settings comes first: nothing has to be undone when one of them is wrong.
  const egress = openEgress(settings, log)
  const hosts = await prepareHosts(settings, log)
  const stores = await openStores(settings, log)
  const base: ServerBase = { version: VERSION, settings, log, egress, hosts, stores }
  const parts = createServerParts(base)
  const { deployer, meter, status } = parts
  return {
    log,
    dataDir: stores.dataDir,
    token: stores.token,
    sandbox: hosts.sandbox,
    gateway: gatewayOptions(base, parts),
    createControlPlane: (addresses) => createControlPlane(controlPlaneOptions(base, parts, addresses)),
    deploy: (functionName, owner, request) => deployer.deploy(functionName, owner, request),
    remove: (functionName, owner) => deployer.remove(functionName, owner),
    underWay: () => meter.underWay,
    ready: startHosts(base, parts),
    end: (phase) => status.drain(phase),
    close: async () => {
      await parts.close()
      await stores.close()
    },
  }
}

function openLog({ logLevel }: ServerSettings): Logger {
  const destination = pino.destination({ dest: 2, sync: true })
  // A log that cannot be written, as on a full disk, ends nothing.
  destination.on('error', () => {})
  return pino({ level: logLevel }, destination)
}

function gatewayOptions(
  { settings, log, stores: { registry } }: ServerBase,
  { metrics, hops, pipeline, status }: ServerParts,
): ServerGatewayOptions {
  return {
    invoke: (call) => pipeline.invoke(call),
    limits: settings,
    phase: () => status.gatewayPhase,
    onFault: faultLogger(log),
    onRefused: (code) => metrics.shed(code),
    isFunction: (functionName) => registry.find(functionName) !== undefined,
    chainOf: (header) => hops.fromHeader(header),
    ownerOf: (functionName) => registry.ownerOf(functionName) ?? '',
  }
}

function controlPlaneOptions(
  { version, settings, log, stores }: ServerBase,
  { metrics, meter, pipeline, fleet, deployer, status }: ServerParts,
  addresses: ServerAddresses,
): ControlPlaneOptions {
  const { token, registry, access, audit, logs, ledger } = stores
  const { answerTimeoutMs, maxBodyBytes, maxBundleBytes, metricsAccess } = settings
  return {
    ...addresses,
    version,
    operatorToken: token,
    access,
    audit,
    registry,
    logs,
    ledger,
    meter,
    metrics,
    metricsAccess: metricsAccess === 'token' ? 'token' : 'open',
    deployer,
    invoke: (call) => pipeline.invoke(call),
    isQuarantined: (functionName) => fleet.isQuarantined(functionName),
    status: () => status.read(),
    answerTimeoutMs,
    maxBodyBytes,
    maxBundleBytes,
    onFault: faultLogger(log),
  }
}

function faultLogger(log: Logger): (error: CarpoolError) => void {
  return (error) => log.error({ err: error.cause ?? error }, 'fault')
}

function startHosts({ log, hosts: { sandbox } }: ServerBase, { fleet, status }: ServerParts): Promise<void> {
  const ready = fleet.start().then(() => {
    status.open()
    log.info({ hosts: fleet.hosts.length }, 'hosts are ready')
    log.info(sandboxSentences(sandbox).join(' '))
  })
  // Who does not wait for it gets no unhandled rejection.
  ready.catch(() => {})
  return ready
}
