import { Account } from '../../src/accounting/account.ts'
import { ENTRIES } from '@carpool/runtime/bridge'
import { EntryQueue, type BatchListener, type EnteredIsolate, type PermitSource } from '../../src/scheduler/entry-queue.ts'
import { RunScheduler, type Runnable } from '../../src/scheduler/run-scheduler.ts'
import { Entry, type Batch } from '../../src/scheduler/batch.ts'

/** An isolate whose entries run when the test says so, on a clock that the test sets. */
export interface FakeIsolate extends EnteredIsolate {
  disposed: boolean
  /** What its clock of entries says, in ns. */
  entryCpuNs: readonly number[]
  /** Texts of the entries that went in, in order. */
  readonly entered: string[]
  /** Batches that are under way. */
  running: number
  /** Called when a batch has run. */
  onBatchDone: () => void
}

export function fakeIsolate(): FakeIsolate {
  let pushed: string[] = []
  const isolate: FakeIsolate = {
    disposed: false,
    entryCpuNs: [],
    peakBytes: 0,
    readEntryCpu: () => isolate.entryCpuNs.length,
    resetEntryCpu: () => {
      isolate.entryCpuNs = []
    },
    entered: [],
    running: 0,
    onBatchDone: () => {},
    push: (_op, _number, text) => void pushed.push(text),
    enter: () => {
      isolate.entryCpuNs = []
      isolate.entered.push(...pushed)
      pushed = []
      isolate.running++
    },
    measure: (task) => task(),
  }
  return isolate
}

/** The scheduler of a host in which nothing comes to run for long. */
export function schedulerOf(permits: number, longBatches = 1): RunScheduler<Runnable> {
  return new RunScheduler({ permits, longBatches, firstSliceMs: 10, onLong: () => {}, onCheck: () => {} })
}

export function queueOf(isolate: FakeIsolate, log: BatchListener, scheduler: PermitSource): EntryQueue {
  const queue = new EntryQueue(isolate, log, scheduler)
  isolate.onBatchDone = () => queue.batchDone()
  return queue
}

/** Lets everything happen that waits for nothing but its turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What runs ends, and each entry took so much. */
export function settle(isolate: FakeIsolate, ...entryCpuNs: readonly number[]): void {
  isolate.entryCpuNs = entryCpuNs
  isolate.running--
  isolate.onBatchDone()
}

export function entry(text: string, account = new Account(), readyAtMs = performance.now()): Entry {
  return new Entry(account, ENTRIES.settleFetch, 0, text, 0, '', readyAtMs)
}

export function firstEntry(invocation: number, account: Account): Entry {
  return new Entry(account, ENTRIES.invoke, invocation, 'invoke')
}

export interface BatchLog extends BatchListener {
  readonly began: Batch[]
  readonly ended: Batch[]
  readonly lost: Batch[]
  /** How many batches had ended each time that messages were to be read. */
  readonly readAfter: number[]
  /** Invocations whose first entry has run. */
  readonly ran: number[]
}

let lastFunction = 0

/** Of a function of its own. */
export function batchLog(): BatchLog {
  const log: BatchLog = {
    holder: { owner: 'o', functionName: `f${++lastFunction}` },
    began: [],
    ended: [],
    lost: [],
    readAfter: [],
    ran: [],
    batchBegan: (batch) => void log.began.push(batch),
    readMessages: () => void log.readAfter.push(log.ended.length + log.lost.length),
    batchEnded: (batch) => void log.ended.push(batch),
    batchLost: (batch) => void log.lost.push(batch),
    entryRan: (invocation) => void log.ran.push(invocation),
  }
  return log
}
