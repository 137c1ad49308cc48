import { Account } from '../src/accounting/account.ts'
import fc from 'fast-check'
import t from 'tap'
import { charged, drained, loop, loopingIsolate } from './support/looping-isolate.ts'

t.test('after 200 batches of loops the accounts add up to what their stays used, to the nanosecond', async (t) => {
  const before = process.cpuUsage()
  const { isolate, queue, told } = await loopingIsolate()
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
    if (index % 10 === 0) await queue.alone(accounts[0]!, (measured) => measured(() => isolate.heapBytes()))
    entries += batch.length
    await drained(queue)
  }
  const used = process.cpuUsage(before)
  const sumNs = accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
  t.equal(
    sumNs,
    told.ended.reduce((sum, { totalNs }) => sum + totalNs, 0),
  )
  t.ok(sumNs <= (used.user + used.system) * 1000, `${sumNs} ns`)
  t.ok(accounts.every(({ cpuNs }) => cpuNs > 0))
  t.ok(
    told.ended.every(({ usedNs }) => usedNs.every((ns) => ns > 0)),
    'every entry is measured',
  )
  t.equal(
    told.ended.reduce((sum, { accounts }) => sum + accounts.length, 0),
    entries + 20,
  )
  t.ok(told.ended.length < entries, 'some entries shared a stay')
})

t.test('an isolate that is disposed in an endless loop is told as lost, once', async (t) => {
  const { isolate, queue, told, begun } = await loopingIsolate()
  const account = new Account()
  queue.push(loop(account, 0, 'for ever'))
  queue.push(loop(account, 10))
  await begun
  const charge = charged(queue)
  isolate.dispose()
  await charge
  t.same([told.began.length, told.ended.length, told.lost.length], [1, 0, 1])
  t.equal(queue.stay, undefined)
  queue.push(loop(account, 10))
  t.equal(queue.stay, undefined)
})

t.test('a batch that waits when the isolate is disposed is lost with it', async (t) => {
  const { isolate, queue, told } = await loopingIsolate()
  const account = new Account()
  for (let count = 0; count < 8; count++) queue.push(loop(account, 50_000_000))
  await charged(queue)
  const charge = charged(queue)
  isolate.dispose()
  await charge
  t.same([told.began.length, told.ended.length, told.lost.length], [2, 1, 1])
})
