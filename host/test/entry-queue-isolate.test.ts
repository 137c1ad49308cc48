import { Bootstrap, GuestIsolate } from '@carpool/isolate'
import { Account } from '@carpool/metering'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { EntryGate } from '../src/entry-gate.ts'
import { EntryQueue, type EnteredIsolate } from '../src/entry-queue.ts'
import { listener } from './support/fake-isolate.ts'

/** A guest that can only loop, and tells its spans as the runtime does. */
const BOOT = new Bootstrap(`(function boot(names, begun) {
  const now = () => Number(Temporal.Now.instant().epochNanoseconds % 1_000_000_000_000n)
  const starts = []
  return {
    loop(count) { starts.push(now()); let sum = 0; for (let i = 0; i < count; i++) sum += i % 7; return sum },
    fail(count) { starts.push(now()); for (let i = 0; i < count; i++); throw new Error('thrown') },
    loopForEver() { starts.push(now()); begun(); for (;;); },
    spans(count) { const ends = [...starts.slice(1), now()]; return starts.map((start, i) => ends[i] - start).slice(-count).join() },
  }
})`)

/** Long enough for the isolate's thread to get a core on any machine that is not stuck, in ms. */
const PATIENCE_MS = 30_000

async function made(t: Test): Promise<{ isolate: GuestIsolate; entered: EnteredIsolate; begun: Promise<void> }> {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const isolate = await GuestIsolate.create({
    bootstrap: BOOT,
    entryNames: ['loop', 'fail', 'loopForEver', 'spans'],
    callbacks: {
      begun: {
        blocking: false,
        call: () => {
          resolve()
          return undefined
        },
      },
    },
    memoryLimitMb: 32,
    onCatastrophe: (reason) => t.fail(reason),
  })
  t.teardown(() => isolate.dispose())
  await isolate.atRest(PATIENCE_MS)
  const entered: EnteredIsolate = {
    get cpu() {
      return isolate.cpu
    },
    get disposed() {
      return isolate.disposed
    },
    // As where the addon is not built.
    hasEntryClock: false,
    spans: [],
    forgetSpans: () => {},
    atRest: () => isolate.atRest(PATIENCE_MS),
    enter: (entry, args) => isolate.enter(entry, args),
    run: (entry, args) => isolate.run(entry, args),
  }
  return { isolate, entered, begun }
}

function charged(queue: EntryQueue): Promise<void> {
  return new Promise((resolve) => queue.whenCharged(resolve))
}

t.test('after 200 batches of loops the accounts add up to the clock of the isolate, to the nanosecond', async (t) => {
  const { isolate, entered } = await made(t)
  const before = isolate.cpu
  t.ok(before.isExact)
  const told = listener()
  const queue = new EntryQueue(entered, told, new EntryGate(1))
  const accounts = Array.from({ length: 7 }, () => new Account())
  const loop = fc.record({
    account: fc.nat(6),
    name: fc.constantFrom('loop', 'loop', 'loop', 'fail'),
    count: fc.oneof({ weight: 9, arbitrary: fc.nat(20_000) }, { weight: 1, arbitrary: fc.nat(2_000_000) }),
  })
  let entries = 0
  const batches = fc.sample(fc.array(loop, { minLength: 1, maxLength: 20, size: 'max' }), 200)
  for (const [index, batch] of batches.entries()) {
    for (const { account, name, count } of batch) {
      queue.push({ name, args: [count], account: accounts[account]!, readyAtMs: 0 })
    }
    if (index % 10 === 0) await queue.alone(accounts[0]!, () => isolate.heapBytes())
    entries += batch.length
    while (queue.stay !== undefined) await charged(queue)
  }
  const after = await isolate.atRest(PATIENCE_MS)
  t.ok(after.isExact)
  t.equal(
    accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0),
    after.ns - before.ns,
  )
  t.ok(accounts.every(({ cpuNs }) => cpuNs > 0))
  t.equal(
    told.ended.reduce((sum, { accounts }) => sum + accounts.length, 0),
    entries + 20,
  )
  t.ok(told.ended.length < entries, 'some entries shared a stay')
})

t.test('an isolate that is disposed in an endless loop is told as lost, once', async (t) => {
  const { isolate, entered, begun } = await made(t)
  const told = listener()
  const queue = new EntryQueue(entered, told, new EntryGate(1))
  const account = new Account()
  queue.push({ name: 'loopForEver', args: [], account, readyAtMs: 0 })
  queue.push({ name: 'loop', args: [10], account, readyAtMs: 0 })
  await begun
  t.notOk(isolate.cpu.isExact)
  const charge = charged(queue)
  isolate.dispose()
  await charge
  t.same([told.began.length, told.ended.length, told.lost.length], [1, 0, 1])
  t.equal(queue.stay, undefined)
  queue.push({ name: 'loop', args: [10], account, readyAtMs: 0 })
  t.equal(queue.stay, undefined)
})

t.test('a batch that waits when the isolate is disposed is lost with it', async (t) => {
  const { isolate, entered } = await made(t)
  const told = listener()
  const queue = new EntryQueue(entered, told, new EntryGate(1))
  const account = new Account()
  for (let count = 0; count < 8; count++) queue.push({ name: 'loop', args: [50_000_000], account, readyAtMs: 0 })
  await charged(queue)
  const charge = charged(queue)
  isolate.dispose()
  await charge
  t.same([told.began.length, told.ended.length, told.lost.length], [2, 1, 1])
})
