import { Admission } from '@carpool/admission'
import { monotonicClock, type Revision } from '@carpool/core'
import type { Egress } from '@carpool/egress'
import { Fleet, type FleetOptions, type RevisionCode } from '@carpool/fleet'
import { Meter } from '@carpool/ledger'
import { ServerMetrics } from '@carpool/telemetry'
import type { Logger } from 'pino'
import { CodeCaches } from './deploy/code-caches.ts'
import { Deployer } from './deploy/deployer.ts'
import { forgetDeleted } from './deleted-functions.ts'
import { Hops } from './hops.ts'
import { EgressRelay, type FetchingRevision } from './host-reports/egress-relay.ts'
import { FunctionLogger } from './host-reports/function-logger.ts'
import { createHostListener } from './host-reports/host-listener.ts'
import { KnownRevisions } from './host-reports/known-revisions.ts'
import { SourceMapper } from './host-reports/source-mapper.ts'
import { UsageRecorder } from './host-reports/usage-recorder.ts'
import type { PreparedHosts } from './hosts/prepare-hosts.ts'
import { CallPipeline } from './invoke.ts'
import { ServerStatus } from './server-status.ts'
import type { ServerSettings } from './settings/table.ts'
import type { Stores } from './stores.ts'

/** What the parts are made with. */
export interface ServerBase {
  readonly version: string
  readonly settings: ServerSettings
  readonly log: Logger
  readonly egress: Egress
  readonly hosts: PreparedHosts
  readonly stores: Stores
}

/** What calls, deploys and hosts go through. */
export interface ServerParts {
  readonly metrics: ServerMetrics
  readonly meter: Meter
  readonly hops: Hops
  readonly pipeline: CallPipeline
  readonly fleet: Fleet
  readonly deployer: Deployer
  readonly status: ServerStatus
  /** Ends the host processes, and what is done for them. */
  close(): Promise<void>
}

/** Makes the parts, each with those that it uses. Nothing runs yet. */
export function createServerParts(base: ServerBase): ServerParts {
  const { version, settings, log, egress, hosts, stores } = base
  const { registry, access, logs, ledger } = stores
  const metrics = new ServerMetrics()
  const meter = createMeter(base, metrics)
  const admission = new Admission({
    maxInFlight: settings.maxInFlight,
    maxPerOwner: settings.ownerConcurrency,
    ledgerUnavailable: () => ledger.unavailable,
  })
  const hops = new Hops(settings)
  const functionLogger = new FunctionLogger(logs, new SourceMapper((revision) => registry.sourceMap(revision)), {
    redact: (revision, text) => access.secrets.redact(revision, text),
    hasLog: ({ functionName, owner }) => registry.ownerOf(functionName) === owner,
  })
  const pipeline = new CallPipeline({ registry, hops, admission, meter, functionLogger })

  const revisions = new KnownRevisions(registry)
  const staged = new Map<string, FetchingRevision>()
  const usage = new UsageRecorder({ revisions, ledger, metrics, now: Date.now })
  const relay = new EgressRelay({
    egress,
    revisionOf: (id) => revisions.find(id) ?? staged.get(id),
    headersFor: (source) => [['x-carpool-hops', hops.headerOf(source)]],
    onUnclaimed: (host, revision, bytes) => usage.unclaimed.add(host, revision, bytes),
    socketsChanged: (functionName, change) => metrics.streams.changed(functionName, 'socket', change),
  })
  const codeCaches = new CodeCaches({ registry, codeOf: (revision) => codeOf(base, revision), log })
  const listener = createHostListener({ registry, revisions, functionLogger, relay, usage, codeCaches, metrics, log })
  const fleet = new Fleet({ ...hosts, ...functionSources(base), listener, calls: pipeline })
  pipeline.useFleet(fleet)
  codeCaches.useFleet(fleet)
  followRoutes(base, fleet)
  forgetDeleted(registry, metrics)

  const deployer = new Deployer({ registry, fleet, secrets: access.secrets, staged, eraseLog: (name) => logs.remove(name) })
  const status = new ServerStatus({ version, sandbox: hosts.sandbox, fleet, admission, metrics, ledger })
  metrics.watchFleet(() => status.readFleet())
  metrics.watchEgress(() => ({ ...egress.reading, ended: egress.ended }))
  const close = async (): Promise<void> => {
    await fleet.close()
    await codeCaches.settled
    await egress.close()
    usage.unclaimed.close()
    await functionLogger.settled()
  }
  return { metrics, meter, hops, pipeline, fleet, deployer, status, close }
}

function createMeter({ stores: { ledger } }: ServerBase, metrics: ServerMetrics): Meter {
  return new Meter({
    write: (record, instanceUs, written) => {
      metrics.recorded(record)
      ledger.write(record, instanceUs, written)
    },
    hold: (record) => {
      metrics.recorded(record)
      if (!ledger.hold(record)) metrics.unrecorded()
    },
    hasRun: (revision) => ledger.hasRun(revision),
    clock: monotonicClock,
  })
}

/** What the fleet asks about functions. */
function functionSources(base: ServerBase): Pick<FleetOptions, 'codeOf' | 'ownerOf' | 'isLive' | 'isKeptWarm' | 'keptWarm'> {
  const {
    settings: { keepWarm },
    stores: { registry },
  } = base
  const liveRevision = (functionName: string): Revision | undefined =>
    registry.disabledInfo(functionName) === undefined ? registry.find(functionName) : undefined
  return {
    codeOf: (revision) => codeOf(base, revision),
    ownerOf: (functionName) => registry.ownerOf(functionName),
    isLive: ({ functionName, id }) => registry.find(functionName)?.id === id,
    isKeptWarm: (functionName) => keepWarm.includes(functionName),
    keptWarm: () => keepWarm.map(liveRevision).filter((revision) => revision !== undefined),
  }
}

async function codeOf({ stores: { registry, access } }: ServerBase, revision: Revision): Promise<RevisionCode> {
  return { ...(await registry.code(revision)), secrets: access.secrets.of(revision) }
}

/** Has hosts take up what is published, and drop what is replaced or deleted. */
function followRoutes({ log, stores: { registry, logs } }: ServerBase, fleet: Fleet): void {
  registry.onRouteChange(({ functionName, previous, current }) => {
    if (previous !== undefined) fleet.retire(previous.id)
    if (current !== undefined) return fleet.published(current)
    fleet.forget(functionName)
    logs.remove(functionName).catch((cause: unknown) => log.warn({ functionName, err: cause }, 'log not removed'))
  })
}
