import { availableParallelism } from 'node:os'
import { Account } from '../src/accounting/account.ts'
import t from 'tap'
import { drained, loop, loopingIsolate, type Looping } from './support/looping-isolate.ts'

const ISOLATES = 4
/** Loops that take milliseconds, and some that take microseconds and share stays. */
const LOOPS = Array.from({ length: 600 }, (_, index) => (index % 12 === 0 ? 3_000_000 : 300))

interface Rig extends Looping {
  readonly accounts: readonly Account[]
}

async function made(): Promise<Rig> {
  return { ...(await loopingIsolate()), accounts: Array.from({ length: 3 }, () => new Account()) }
}

function cpuNs({ accounts }: Rig): number {
  return accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
}

const rigs = await Promise.all(Array.from({ length: ISOLATES }, made))

t.test('isolates that loop at once are not charged for the time in which they wait for a core', async (t) => {
  const before = process.cpuUsage()
  for (const { queue, accounts } of rigs) {
    for (const [index, count] of LOOPS.entries()) queue.push(loop(accounts[index % 3]!, count))
  }
  await Promise.all(rigs.map(({ queue }) => drained(queue)))
  const used = process.cpuUsage(before)
  const usedNs = (used.user + used.system) * 1000
  const chargedNs = rigs.reduce((sum, rig) => sum + cpuNs(rig), 0)
  t.comment(`${availableParallelism()} cores: charged ${chargedNs} ns, used ${usedNs} ns`)
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
