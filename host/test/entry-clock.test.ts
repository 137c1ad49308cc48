import { availableParallelism } from 'node:os'
import { Bootstrap, GuestIsolate } from '@carpool/isolate'
import { Account } from '@carpool/metering'
import t from 'tap'
import { EntryGate } from '../src/entry-gate.ts'
import { EntryQueue } from '../src/entry-queue.ts'
import { listener, type Told } from './support/fake-isolate.ts'

/** A guest that can only loop, and is measured as the runtime is. */
const BOOT = new Bootstrap(`(function boot(names, begin, end) {
  return {
    loop(count) { begin(); let sum = 0; for (let i = 0; i < count; i++) sum += i % 7; return sum },
    measure: begin,
    spans: end,
  }
})`)

const ISOLATES = 4
/** Loops that take milliseconds, and some that take microseconds and share stays. */
const LOOPS = Array.from({ length: 600 }, (_, index) => (index % 12 === 0 ? 3_000_000 : 300))

interface Rig {
  readonly isolate: GuestIsolate
  readonly queue: EntryQueue
  readonly told: Told
  readonly accounts: readonly Account[]
}

async function made(): Promise<Rig> {
  const isolate = await GuestIsolate.create({
    bootstrap: BOOT,
    entryNames: ['loop', 'measure', 'spans'],
    callbacks: {},
    memoryLimitMb: 32,
    onCatastrophe: (reason) => t.fail(reason),
  })
  t.teardown(() => isolate.dispose())
  const told = listener()
  return {
    isolate,
    told,
    queue: new EntryQueue(isolate, told, new EntryGate(1)),
    accounts: Array.from({ length: 3 }, () => new Account()),
  }
}

function cpuNs({ accounts }: Rig): number {
  return accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
}

async function drained({ queue }: Rig): Promise<void> {
  while (queue.stay !== undefined) await new Promise<void>((resolve) => queue.whenCharged(resolve))
}

const rigs = await Promise.all(Array.from({ length: ISOLATES }, made))
const skip = rigs.every(({ isolate }) => isolate.hasEntryClock)
  ? false
  : 'the entry clock is not built for this platform and version of Node.js'

t.test('isolates that loop at once are not charged for the time in which they wait for a core', { skip }, async (t) => {
  const before = process.cpuUsage()
  for (const { queue, accounts } of rigs) {
    for (const [index, count] of LOOPS.entries())
      queue.push({ name: 'loop', args: [count], account: accounts[index % 3]!, readyAtMs: 0 })
  }
  await Promise.all(rigs.map(drained))
  const used = process.cpuUsage(before)
  const usedNs = (used.user + used.system) * 1000
  const chargedNs = rigs.reduce((sum, rig) => sum + cpuNs(rig), 0)
  const byTimeNs = rigs.reduce((sum, { isolate }) => sum + isolate.cpu.ns, 0)
  t.comment(
    `${availableParallelism()} cores: charged ${chargedNs} ns, used ${usedNs} ns, by the clocks of isolates ${byTimeNs} ns`,
  )
  t.ok(chargedNs <= usedNs * 1.05, `charged ${chargedNs} ns of ${usedNs} ns`)
  // The loops are nearly all that the process did.
  t.ok(chargedNs >= usedNs / 2, `charged ${chargedNs} ns of ${usedNs} ns`)
  for (const { told, accounts } of rigs) {
    t.equal(
      told.ended.reduce((sum, { accounts }) => sum + accounts.length, 0),
      LOOPS.length,
    )
    t.ok(told.ended.length < LOOPS.length, 'some entries shared a stay')
    t.ok(accounts.every(({ cpuNs }) => cpuNs > 0))
    t.ok(told.ended.every(({ totalNs }) => totalNs >= 0 && totalNs <= usedNs))
  }
})
