import type { CpuReading, Primitive } from '@carpool/isolate'
import { Account } from '@carpool/metering'
import type { EnteredIsolate, StayListener } from '../../src/entry-queue.ts'
import type { Entry, Stay } from '../../src/stay.ts'

/** An isolate whose entries run when the test says so, on a clock that the test sets. */
export interface FakeIsolate extends EnteredIsolate {
  disposed: boolean
  /** Its clock, in ns, and whether it stands still. */
  clock: CpuReading
  /** Whether it has a clock of entries, and what that says while they run, in ns. */
  hasEntryClock: boolean
  spans: readonly number[]
  /** Names of the entries that went in, in order, but for `spans`. */
  readonly entered: string[]
  /** What waits for the isolate to have run, oldest first. */
  readonly running: PromiseWithResolvers<Primitive>[]
  /** What waits for it to come to rest. */
  readonly resting: PromiseWithResolvers<CpuReading>[]
}

/** Made at `startNs`: what it took to make it. Without a clock of entries unless the test gives it one. */
export function fakeIsolate(startNs = 0, hasEntryClock = false): FakeIsolate {
  const isolate: FakeIsolate = {
    disposed: false,
    clock: { ns: startNs, isExact: true },
    hasEntryClock,
    spans: [],
    forgetSpans: () => {},
    entered: [],
    running: [],
    resting: [],
    get cpu() {
      return isolate.clock
    },
    atRest: () => later(isolate.resting),
    enter: (name) => void isolate.entered.push(name),
    run: (name) => {
      if (name !== 'spans') isolate.entered.push(name)
      return later(isolate.running)
    },
  }
  return isolate
}

function later<T>(queue: PromiseWithResolvers<T>[]): Promise<T> {
  const deferred = Promise.withResolvers<T>()
  queue.push(deferred)
  return deferred.promise
}

/** Lets everything happen that waits for nothing but its turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What runs ends: the clock goes on by so much and stands, and the last entry or `spans` returns `told`. */
export async function settle(isolate: FakeIsolate, cpuNs: number, told?: Primitive): Promise<void> {
  isolate.clock = { ns: isolate.clock.ns + cpuNs, isExact: true }
  isolate.running.shift()?.resolve(told)
  await turn()
}

export function entry(name: string, account = new Account()): Entry {
  return { name, args: [], account, readyAtMs: performance.now() }
}

export function firstEntry(invocation: number, account: Account): Entry {
  return { ...entry('invoke', account), invocation }
}

export interface Told extends StayListener {
  readonly began: Stay[]
  readonly ended: Stay[]
  readonly lost: Stay[]
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
    delaysMs: [],
    ran: [],
    stayBegan: (stay) => void told.began.push(stay),
    stayEnded: (stay) => void told.ended.push(stay),
    stayLost: (stay) => void told.lost.push(stay),
    entryDelayed: (delayMs) => void told.delaysMs.push(delayMs),
    stayDelayed: () => {},
    entryRan: (invocation) => void told.ran.push(invocation),
  }
  return told
}
