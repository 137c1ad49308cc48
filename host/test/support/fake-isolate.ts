import { Account } from '../../src/accounting/account.ts'
import { ENTRIES } from '@carpool/runtime/bridge'
import type { EntryGate } from '../../src/scheduler/entry-gate.ts'
import { EntryQueue, type EnteredIsolate, type StayListener } from '../../src/scheduler/entry-queue.ts'
import { Entry, type Stay } from '../../src/scheduler/stay.ts'

/** An isolate whose entries run when the test says so, on a clock that the test sets. */
export interface FakeIsolate extends EnteredIsolate {
  disposed: boolean
  /** What its clock of entries says, in ns. */
  spansNs: readonly number[]
  /** Texts of the entries that went in, in order. */
  readonly entered: string[]
  /** Batches that are under way. */
  running: number
  /** Called when a batch has run. */
  onLeft: () => void
}

export function fakeIsolate(): FakeIsolate {
  let pushed: string[] = []
  const isolate: FakeIsolate = {
    disposed: false,
    spansNs: [],
    readSpans: () => isolate.spansNs.length,
    forgetSpans: () => {
      isolate.spansNs = []
    },
    entered: [],
    running: 0,
    onLeft: () => {},
    push: (_op, _number, text) => void pushed.push(text),
    enter: () => {
      isolate.entered.push(...pushed)
      pushed = []
      isolate.running++
    },
    measure: (task) => task(),
  }
  return isolate
}

export function queueOf(isolate: FakeIsolate, told: StayListener, gate: EntryGate): EntryQueue {
  const queue = new EntryQueue(isolate, told, gate)
  isolate.onLeft = () => queue.left()
  return queue
}

/** Lets everything happen that waits for nothing but its turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What runs ends, and each entry took so much. */
export function settle(isolate: FakeIsolate, ...spansNs: readonly number[]): void {
  isolate.spansNs = spansNs
  isolate.running--
  isolate.onLeft()
}

export function entry(text: string, account = new Account(), readyAtMs = performance.now()): Entry {
  return new Entry(account, ENTRIES.settleFetch, 0, text, 0, '', readyAtMs)
}

export function firstEntry(invocation: number, account: Account): Entry {
  return new Entry(account, ENTRIES.invoke, invocation, 'invoke')
}

export interface Told extends StayListener {
  readonly began: Stay[]
  readonly ended: Stay[]
  readonly lost: Stay[]
  /** How many stays had ended at each time that what was said was to be heard. */
  readonly heardAfter: number[]
  /** By how much entries began late, in ms. */
  readonly delaysMs: number[]
  /** Invocations whose first entry has run. */
  readonly ran: number[]
}

export function listener(): Told {
  const told: Told = {
    began: [],
    ended: [],
    lost: [],
    heardAfter: [],
    delaysMs: [],
    ran: [],
    stayBegan: (stay) => void told.began.push(stay),
    stayLeaves: () => void told.heardAfter.push(told.ended.length + told.lost.length),
    stayEnded: (stay) => void told.ended.push(stay),
    stayLost: (stay) => void told.lost.push(stay),
    entryDelayed: (delayMs) => void told.delaysMs.push(delayMs),
    stayDelayed: () => {},
    entryRan: (invocation) => void told.ran.push(invocation),
  }
  return told
}
