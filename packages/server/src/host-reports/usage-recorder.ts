import type { Ledger } from '@carpool/ledger'
import type { ServerMetrics } from '@carpool/telemetry'
import { whole, type Background, type HostCpu } from '@carpool/wire'
import type { FetchedBytes, FetchingHost } from './egress-relay.ts'
import type { KnownRevisions } from './known-revisions.ts'

interface ReportingHost {
  readonly id: number
}

interface UsageRecorderParts {
  readonly revisions: KnownRevisions
  readonly ledger: Pick<Ledger, 'writeBackground'>
  readonly metrics: Pick<ServerMetrics, 'usedInBackground' | 'hostCpu'>
  readonly now: () => number
}

/** Takes usage that no answer carries to the ledger and the metrics. */
export class UsageRecorder {
  readonly #parts: UsageRecorderParts
  readonly unclaimed = new UnclaimedEgress((host, used) => this.usedInBackground(host, used))

  constructor(parts: UsageRecorderParts) {
    this.#parts = parts
  }

  usedInBackground(host: ReportingHost, { revision: id, ...used }: Background): void {
    const { revisions, ledger, metrics, now } = this.#parts
    const revision = revisions.find(id)
    const cpuUs = whole(used.cpuUs)
    metrics.usedInBackground(cpuUs)
    if (revision === undefined) return
    ledger.writeBackground({
      functionName: revision.functionName,
      revision: id,
      owner: revision.owner,
      host: host.id,
      atMs: now(),
      cpuUs,
      egressBytesOut: whole(used.egressBytesOut),
      egressBytesIn: whole(used.egressBytesIn),
      sockets: whole(used.sockets),
      socketUs: whole(used.socketUs),
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

const REPORT_MS = 250

/**
 * Adds up the bytes of fetches whose end their host did not wait for: of invocations that timed out, of aborts, of hosts that are
 * gone. They are background usage of the function, and reported a few times a second: a storm of aborts must not be one of rows.
 */
export class UnclaimedEgress {
  readonly #report: (host: FetchingHost, used: Background) => void
  readonly #sums = new Map<FetchingHost, Map<string, { bytesOut: number; bytesIn: number }>>()
  #timer: NodeJS.Timeout | undefined

  constructor(report: (host: FetchingHost, used: Background) => void) {
    this.#report = report
  }

  add(host: FetchingHost, revision: string, { bytesOut, bytesIn }: FetchedBytes): void {
    if (bytesOut + bytesIn === 0) return
    let sums = this.#sums.get(host)
    if (sums === undefined) this.#sums.set(host, (sums = new Map()))
    const sum = sums.get(revision)
    if (sum === undefined) {
      sums.set(revision, { bytesOut, bytesIn })
    } else {
      sum.bytesOut += bytesOut
      sum.bytesIn += bytesIn
    }
    this.#timer ??= setTimeout(() => this.#flush(), REPORT_MS).unref()
  }

  /** Reports what is left. */
  close(): void {
    this.#flush()
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const sums = [...this.#sums]
    this.#sums.clear()
    for (const [host, byRevision] of sums) {
      for (const [revision, { bytesOut, bytesIn }] of byRevision) {
        const bytes = { egressBytesOut: bytesOut, egressBytesIn: bytesIn }
        this.#report(host, { type: 'background', revision, cpuUs: 0, ...bytes, sockets: 0, socketUs: 0 })
      }
    }
  }
}
