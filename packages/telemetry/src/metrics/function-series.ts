import { execUs, type InvocationRecord, type StartKind, type Trigger } from '@carpool/core'
import { Distribution } from './histogram.ts'
import type { Labels } from './metric.ts'

const MIB = 1024 * 1024

/** Upper bounds in bytes, up to the largest memory limit. */
export const MEMORY_BUCKETS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096].map((mebibytes) => mebibytes * MIB)

/** The words of OpenTelemetry's `faas.trigger`, which has none for a command line. */
const TRIGGER_LABELS: Readonly<Record<Trigger, string>> = { http: 'http', cli: 'other' }

/**
 * What is counted for one function and one trigger. Plain numbers, for every invocation passes here: they become series only when somebody
 * reads them.
 */
export class FunctionSeries {
  readonly labels: Labels
  readonly outcomes = new Map<InvocationRecord['outcome'], number>()
  readonly coldStarts = new Map<StartKind, number>()
  readonly duration = new Distribution()
  readonly init = new Distribution()
  readonly memory = new Distribution(MEMORY_BUCKETS)
  readonly bytes = { fromClient: 0, toClient: 0, fromUpstream: 0, toUpstream: 0 }
  cpuSeconds = 0

  constructor(functionName: string, trigger: Trigger) {
    this.labels = { function: functionName, trigger: TRIGGER_LABELS[trigger] }
  }

  recorded(record: InvocationRecord): void {
    const { outcome, start, cpuUs, initUs, memoryPeakKb } = record
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
    if (outcome === 'refused') return
    this.duration.observe(execUs(record) / 1e6)
    this.cpuSeconds += cpuUs / 1e6
    this.bytes.fromClient += record.bytesIn
    this.bytes.toClient += record.bytesOut
    this.bytes.fromUpstream += record.egressBytesIn
    this.bytes.toUpstream += record.egressBytesOut
    // Of an isolate that died with its host nothing is known.
    if (memoryPeakKb > 0) this.memory.observe(memoryPeakKb * 1024)
    if (start === 'warm') return
    this.coldStarts.set(start, (this.coldStarts.get(start) ?? 0) + 1)
    this.init.observe(initUs / 1e6)
  }

  get timeouts(): number {
    return this.outcomes.get('timeout') ?? 0
  }

  /** Invocations that failed, but for timeouts, which are counted by themselves, and for clients that left. */
  get errors(): number {
    let errors = 0
    for (const [outcome, count] of this.outcomes) if (!NO_ERRORS.has(outcome)) errors += count
    return errors
  }
}

const NO_ERRORS: ReadonlySet<InvocationRecord['outcome']> = new Set(['ok', 'refused', 'timeout', 'canceled'])
