import { Account } from '../src/accounting/account.ts'
import fc from 'fast-check'
import t from 'tap'
import { batchLog, entry, fakeIsolate, queueOf, schedulerOf, settle } from './support/fake-isolate.ts'

t.test('every entry is charged what the clock of entries says, one alone as well', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  const entries = Array.from('abc', (name) => entry(name))
  for (const each of entries) queue.push(each)
  settle(isolate, 7)
  t.same(isolate.entered, ['a', 'b', 'c'])
  settle(isolate, 100, 1)
  t.same(
    entries.map(({ account }) => account.cpuNs),
    [7, 100, 1],
  )
  t.same(
    log.ended.map(({ totalNs }) => totalNs),
    [7, 101],
  )
  t.equal(queue.batch, undefined)
})

t.test('what is charged early is what each has so far, and the end charges the rest', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  const [mine, other] = [new Account(), new Account()]
  for (const name of 'abc') queue.push(entry(name))
  for (const account of [mine, other, mine]) queue.push(entry('d', account))
  settle(isolate, 10)
  settle(isolate, 5, 5)
  const batch = log.began.at(-1)!
  t.equal(batch.accounts.length, 3)
  let calls = 0
  queue.whenCharged({ runsOn: false, charged: () => calls++ })
  batch.measured([40, 5])
  queue.chargeEarly()
  t.same([mine.cpuNs, other.cpuNs, calls], [40, 5, 1])
  queue.chargeEarly()
  t.same([mine.cpuNs, other.cpuNs, calls], [40, 5, 1])
  settle(isolate, 40, 9, 6)
  t.same([mine.cpuNs, other.cpuNs, calls, batch.totalNs], [46, 9, 1, 55])
})

t.test('without spans, what was seen of each is charged', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  const entries = Array.from('abc', (name) => entry(name))
  for (const each of entries) queue.push(each)
  settle(isolate)
  log.began[1]!.measured([30])
  queue.chargeEarly()
  log.began[1]!.measured([30, 4])
  settle(isolate)
  t.same(
    entries.map(({ account }) => account.cpuNs),
    [0, 30, 4],
  )
  t.same(
    log.ended.map(({ totalNs }) => totalNs),
    [0, 34],
  )
  t.equal(queue.batch, undefined)
})

t.test('an isolate that is lost is charged what is known, by the entry', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  queue.push(entry('warm-up'))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  settle(isolate, 10)
  log.began[1]!.measured([20, 30])
  queue.chargeEarly()
  isolate.disposed = true
  settle(isolate, 20, 900)
  t.same([first.account.cpuNs, second.account.cpuNs], [20, 30])
  t.same([log.ended.length, log.lost, queue.batch], [1, [log.began[1]], undefined])
})

t.test('work alone is charged what its tasks took together, whether they fail or not', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  const account = new Account()
  const task = Promise.withResolvers<string>()
  const alone = queue.runAlone(account, async (measured) => {
    const value = await measured(() => {
      isolate.entered.push('task')
      return task.promise
    })
    await measured(() => {
      t.equal(account.cpuNs, 0)
      isolate.entryCpuNs = [34]
      return Promise.reject(new Error(`does not compile: ${value}`))
    })
  })
  queue.push(entry('b'))
  t.same(isolate.entered, ['task'])
  isolate.entryCpuNs = [30]
  task.resolve('code')
  await t.rejects(alone, { message: 'does not compile: code' })
  t.same([account.cpuNs, log.ended[0]?.totalNs], [34, 34])
  t.same(isolate.entered, ['task', 'b'])
})

const batch = fc.record({
  /** Of each entry that may go in; as many are measured as do. */
  spans: fc.array(fc.nat(3_000_000), { minLength: 64, maxLength: 64 }),
  pushes: fc.array(fc.nat(4), { maxLength: 12 }),
  /** How far the clock of entries had got when it was looked at: entries, and per mille of the last of these. */
  looks: fc.array(fc.tuple(fc.integer({ min: 1, max: 64 }), fc.nat(1000), fc.boolean()), { maxLength: 4 }),
})

t.test('whatever is looked at or charged early: each account is charged its own entries, to the nanosecond', async () => {
  fc.assert(
    fc.property(fc.array(batch, { maxLength: 20, size: 'max' }), (batches) => {
      const isolate = fakeIsolate()
      const log = batchLog()
      const queue = queueOf(isolate, log, schedulerOf(1))
      const accounts = Array.from({ length: 5 }, () => new Account())
      const expected = new Map(accounts.map((account) => [account, 0]))
      const run = ({ spans, looks }: (typeof batches)[number]): void => {
        const batch = queue.batch!
        const given = spans.slice(0, batch.accounts.length)
        for (const [index, account] of batch.accounts.entries()) expected.set(account, expected.get(account)! + given[index]!)
        const seen = looks
          .map(([count, permille, isCharged]) => ({ at: Math.min(count, given.length) - 1, permille, isCharged }))
          .toSorted((a, b) => a.at - b.at || a.permille - b.permille)
        for (const { at, permille, isCharged } of seen) {
          batch.measured([...given.slice(0, at), (given[at]! * permille) / 1000])
          if (isCharged) queue.chargeEarly()
        }
        settle(isolate, ...given)
      }
      let pushed = 0
      for (const each of batches) {
        for (const index of each.pushes) queue.push(entry(`e${pushed++}`, accounts[index]))
        if (queue.batch !== undefined) run(each)
      }
      while (queue.batch !== undefined) run({ spans: Array<number>(64).fill(1), pushes: [], looks: [] })
      const sumNs = accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
      return (
        accounts.every((account) => account.cpuNs === expected.get(account)) &&
        isolate.entered.length === pushed &&
        isolate.entered.every((name, index) => name === `e${index}`) &&
        log.began.length === log.ended.length &&
        log.ended.reduce((sum, { totalNs }) => sum + totalNs, 0) === sumNs
      )
    }),
  )
})
