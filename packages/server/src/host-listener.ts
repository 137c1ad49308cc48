import type { FleetListener } from '@carpool/fleet'
import type { ServerMetrics } from '@carpool/telemetry'
import type { Logger } from 'pino'
import type { EgressRelay } from './egress-relay.ts'
import type { FunctionJournal } from './function-journal.ts'
import type { KnownRevisions } from './known-revisions.ts'
import type { UsageJournal } from './usage-journal.ts'

export interface HostListenerParts {
  readonly revisions: KnownRevisions
  readonly journal: FunctionJournal
  readonly relay: EgressRelay
  readonly usage: UsageJournal
  readonly metrics: Pick<ServerMetrics, 'scaled' | 'hostStarted' | 'containment'>
  readonly log: Logger
  /** Takes a function out of service that has harmed so many host processes. */
  readonly disable: (functionName: string, strikes: number) => void
}

/** Takes what host processes tell besides answers to where it belongs. */
export function createHostListener({
  revisions,
  journal,
  relay,
  usage,
  metrics,
  log,
  disable,
}: HostListenerParts): FleetListener {
  return {
    logged: ({ revision: id, level, id: invocationId }, text) => {
      const revision = revisions.find(id)
      if (revision !== undefined) journal.wrote(revision, level, text, invocationId)
    },
    fetchStarted: (host, fetch, head, body) => relay.start(host, fetch, head, body),
    fetchStopped: (host, fetch) => relay.stop(host, fetch),
    usedInBackground: (host, background) => usage.usedInBackground(host, background),
    usedCpu: (host, cpu) => usage.usedCpu(host, cpu),
    onStderr: (host, line) => log.warn({ host: host.id, line }, 'host process wrote to stderr'),
    gone: (host) => relay.stopAll(host),
    hostLost: (how, respawnInMs, host) =>
      log.error({ host: host?.id, how, respawnInMs }, 'host process lost; a new one takes its place'),
    hostPoisoned: (host, { reason, suspects }) => {
      metrics.containment.hostPoisoned(reason)
      log.error({ host: host.id, reason, functions: suspects }, 'host process is poisoned; a new one takes its place')
    },
    strikeAdded: (functionName, level, strikes) => {
      metrics.containment.struck(level)
      log.warn({ functionName, standing: level, strikes }, 'function has harmed a host process, or may have')
      if (level === 'disabled') disable(functionName, strikes)
    },
    hostStarted: (result) => metrics.hostStarted(result),
    scaled: (decision) => {
      metrics.scaled(decision.action, decision.reason)
      log.info({ scaling: decision }, 'scaling decision')
    },
  }
}
