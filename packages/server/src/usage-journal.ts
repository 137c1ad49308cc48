import { type Background, type HostCpu, whole } from '@carpool/wire'
import type { Ledger } from '@carpool/ledger'
import type { ServerMetrics } from '@carpool/telemetry'
import type { KnownRevisions } from './known-revisions.ts'

interface ReportingHost {
  readonly id: number
}

export interface UsageJournalParts {
  readonly revisions: KnownRevisions
  readonly ledger: Pick<Ledger, 'writeBackground'>
  readonly metrics: Pick<ServerMetrics, 'usedInBackground' | 'hostCpu'>
  readonly now: () => number
}

/** Takes what hosts tell of CPU time that no answer carries to the ledger and the metrics. */
export class UsageJournal {
  readonly #parts: UsageJournalParts

  constructor(parts: UsageJournalParts) {
    this.#parts = parts
  }

  usedInBackground(host: ReportingHost, { revision: id, ...told }: Background): void {
    const { revisions, ledger, metrics, now } = this.#parts
    const revision = revisions.find(id)
    const cpuUs = whole(told.cpuUs)
    metrics.usedInBackground(cpuUs)
    if (revision === undefined) return
    ledger.writeBackground({
      functionName: revision.functionName,
      revision: id,
      owner: revision.owner,
      host: host.id,
      atMs: now(),
      cpuUs,
      egressBytesOut: whole(told.egressBytesOut),
      egressBytesIn: whole(told.egressBytesIn),
    })
  }

  usedCpu(host: ReportingHost, cpu: HostCpu): void {
    const { processUs, loopUs, isolatesUs, blanksUs, memoryWatchUs } = cpu
    this.#parts.metrics.hostCpu(host.id, {
      processUs: whole(processUs),
      loopUs: whole(loopUs),
      isolatesUs: whole(isolatesUs),
      blanksUs: whole(blanksUs),
      memoryWatchUs: whole(memoryWatchUs),
    })
  }
}
