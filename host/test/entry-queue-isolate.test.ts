import { availableParallelism } from 'node:os'
import fc from 'fast-check'
import t from 'tap'
import { Account } from '../src/accounting/account.ts'
import { charged, drained, loop, loopingIsolate, type Looping } from './support/looping-isolate.ts'

const ISOLATES = 4
/** Loops that take milliseconds, and some that take microseconds and share batches. */
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

t.test('after 200 batches of loops the accounts add up to what their batches used, to the nanosecond', async (t) => {
  const before = process.cpuUsage()
  const { isolate, queue, log } = await loopingIsolate()
  const accounts = Array.from({ length: 7 }, () => new Account())
  const loops = fc.record({
    account: fc.nat(6),
    how: fc.constantFrom('loop' as const, 'loop' as const, 'loop' as const, 'fail' as const),
    count: fc.oneof({ weight: 9, arbitrary: fc.nat(20_000) }, { weight: 1, arbitrary: fc.nat(2_000_000) }),
  })
  let entries = 0
  const batches = fc.sample(fc.array(loops, { minLength: 1, maxLength: 20, size: 'max' }), 200)
  for (const [index, batch] of batches.entries()) {
    for (const { account, how, count } of batch) queue.push(loop(accounts[account]!, count, how))
    if (index % 10 === 0) await queue.runAlone(accounts[0]!, (measured) => measured(() => isolate.heapBytes()))
    entries += batch.length
    await drained(queue)
  }
  const used = process.cpuUsage(before)
  const sumNs = accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
  t.equal(
    sumNs,
    log.ended.reduce((sum, { totalNs }) => sum + totalNs, 0),
  )
  t.ok(sumNs <= (used.user + used.system) * 1000, `${sumNs} ns`)
  t.ok(accounts.every(({ cpuNs }) => cpuNs > 0))
  t.ok(
    log.ended.every(({ usedNs }) => usedNs.every((ns) => ns > 0)),
    'every entry is measured',
  )
  t.equal(
    log.ended.reduce((sum, { accounts }) => sum + accounts.length, 0),
    entries + 20,
  )
  t.ok(log.ended.length < entries, 'some entries shared a batch')
})

t.test('an isolate that is disposed in an endless loop is reported as lost, once', async (t) => {
  const { isolate, queue, log, begun } = await loopingIsolate()
  const account = new Account()
  queue.push(loop(account, 0, 'for ever'))
  queue.push(loop(account, 10))
  await begun
  const charge = charged(queue)
  isolate.dispose()
  await charge
  t.same([log.began.length, log.ended.length, log.lost.length], [1, 0, 1])
  t.equal(queue.batch, undefined)
  queue.push(loop(account, 10))
  t.equal(queue.batch, undefined)
})

t.test('a batch that waits when the isolate is disposed is lost with it', async (t) => {
  const { isolate, queue, log } = await loopingIsolate()
  const account = new Account()
  for (let count = 0; count < 8; count++) queue.push(loop(account, 50_000_000))
  await charged(queue)
  const charge = charged(queue)
  isolate.dispose()
  await charge
  t.same([log.began.length, log.ended.length, log.lost.length], [2, 1, 1])
})

t.test('isolates that loop at once are not charged for the time in which they wait for a core', async (t) => {
  const rigs = await Promise.all(Array.from({ length: ISOLATES }, made))
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
  for (const { log, accounts } of rigs) {
    t.equal(
      log.ended.reduce((sum, { accounts }) => sum + accounts.length, 0),
      LOOPS.length,
    )
    t.ok(log.ended.length < LOOPS.length, 'some entries shared a batch')
    t.ok(accounts.every(({ cpuNs }) => cpuNs > 0))
    t.ok(log.ended.every(({ totalNs }) => totalNs >= 0 && totalNs <= usedNs))
  }
})
