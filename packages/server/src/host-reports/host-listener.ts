import type { FleetListener } from '@carpool/fleet'
import type { Registry } from '@carpool/registry'
import type { ServerMetrics } from '@carpool/telemetry'
import { whole } from '@carpool/wire'
import type { Logger } from 'pino'
import type { CodeCaches } from '../deploy/code-caches.ts'
import type { EgressRelay } from './egress-relay.ts'
import type { FunctionLogger } from './function-logger.ts'
import type { KnownRevisions } from './known-revisions.ts'
import type { UsageRecorder } from './usage-recorder.ts'

interface HostListenerParts {
  readonly registry: Registry
  readonly revisions: KnownRevisions
  readonly functionLogger: FunctionLogger
  readonly relay: EgressRelay
  readonly usage: UsageRecorder
  readonly codeCaches: Pick<CodeCaches, 'missing'>
  readonly metrics: Pick<ServerMetrics, 'scaled' | 'hostStarted' | 'containment' | 'rejected' | 'streams'>
  readonly log: Logger
}

/** Takes what host processes report besides answers to where it belongs. */
export function createHostListener(parts: HostListenerParts): FleetListener {
  const { revisions, functionLogger, relay, usage, codeCaches, metrics, log } = parts
  return {
    logged: ({ revision: id, level, id: invocationId, rejections }, text) => {
      const revision = revisions.find(id)
      if (revision === undefined) return
      if (rejections !== undefined) metrics.rejected(revision.functionName, whole(rejections))
      functionLogger.wrote(revision, level, text, invocationId)
    },
    fetchStarted: (host, fetch, head, body) => relay.start(host, fetch, head, body),
    fetchStopped: (host, fetch, counted) => relay.stop(host, fetch, counted),
    fetchBodies: (host, fetch) => relay.find(host, fetch),
    streamSaid: (host, message, text, body) => relay.said(host, message, text, body),
    answersChanged: (functionName, kind, change) => metrics.streams.changed(functionName, kind, change),
    usedInBackground: (host, background) => usage.usedInBackground(host, background),
    usedCpu: (host, cpu) => usage.usedCpu(host, cpu),
    uncached: (id) => {
      const revision = revisions.find(id)
      if (revision !== undefined) codeCaches.missing(revision)
    },
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
      if (level === 'disabled') disableHarmful(parts, functionName, strikes)
    },
    hostStarted: (result) => metrics.hostStarted(result),
    scaled: (decision) => {
      metrics.scaled(decision.action, decision.reason)
      log.info({ scaling: decision }, 'scaling decision')
    },
  }
}

/** The fleet has disabled it already, until the server ends. Here it is made to last. */
function disableHarmful({ registry, log }: HostListenerParts, functionName: string, strikes: number): void {
  // It may have been deleted since.
  if (registry.ownerOf(functionName) === undefined) return
  try {
    registry.disable(functionName, { reason: `its code has harmed ${Math.round(strikes)} host processes` })
  } catch (cause) {
    log.error({ functionName, err: cause }, 'it cannot be written that the function is disabled')
  }
}
