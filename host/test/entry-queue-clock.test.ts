import { Account } from '../src/accounting/account.ts'
import fc from 'fast-check'
import t from 'tap'
import { EntryGate } from '../src/scheduler/entry-gate.ts'
import { entry, fakeIsolate, listener, queueOf, settle } from './support/fake-isolate.ts'

t.test('every entry is charged what the clock of entries says, one alone as well', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = queueOf(isolate, told, new EntryGate(1))
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
    told.ended.map(({ totalNs }) => totalNs),
    [7, 101],
  )
  t.equal(queue.stay, undefined)
})

t.test('what is charged early is what each has so far, and the end charges the rest', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = queueOf(isolate, told, new EntryGate(1))
  const [mine, other] = [new Account(), new Account()]
  for (const name of 'abc') queue.push(entry(name))
  for (const account of [mine, other, mine]) queue.push(entry('d', account))
  settle(isolate, 10)
  settle(isolate, 5, 5)
  const stay = told.began.at(-1)!
  t.equal(stay.accounts.length, 3)
  let calls = 0
  queue.whenCharged({ charged: () => calls++ })
  stay.measured([40, 5])
  queue.chargeEarly()
  t.same([mine.cpuNs, other.cpuNs, calls], [40, 5, 1])
  queue.chargeEarly()
  t.same([mine.cpuNs, other.cpuNs, calls], [40, 5, 1])
  settle(isolate, 40, 9, 6)
  t.same([mine.cpuNs, other.cpuNs, calls, stay.totalNs], [46, 9, 1, 55])
})

t.test('without spans, what was seen of each is charged', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = queueOf(isolate, told, new EntryGate(1))
  const entries = Array.from('abc', (name) => entry(name))
  for (const each of entries) queue.push(each)
  settle(isolate)
  told.began[1]!.measured([30])
  queue.chargeEarly()
  told.began[1]!.measured([30, 4])
  settle(isolate)
  t.same(
    entries.map(({ account }) => account.cpuNs),
    [0, 30, 4],
  )
  t.same(
    told.ended.map(({ totalNs }) => totalNs),
    [0, 34],
  )
  t.equal(queue.stay, undefined)
})

t.test('an isolate that is lost is charged what is known, by the entry', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = queueOf(isolate, told, new EntryGate(1))
  queue.push(entry('warm-up'))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  settle(isolate, 10)
  told.began[1]!.measured([20, 30])
  queue.chargeEarly()
  isolate.disposed = true
  settle(isolate, 20, 900)
  t.same([first.account.cpuNs, second.account.cpuNs], [20, 30])
  t.same([told.ended.length, told.lost, queue.stay], [1, [told.began[1]], undefined])
})

t.test('work alone is charged the sum of the tasks that it had measured, whether they fail or not', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = queueOf(isolate, told, new EntryGate(1))
  const account = new Account()
  const task = Promise.withResolvers<string>()
  const alone = queue.alone(account, async (measured) => {
    const value = await measured(() => {
      isolate.entered.push('task')
      return task.promise
    })
    await measured(() => {
      t.equal(account.cpuNs, 0)
      isolate.spansNs = [4]
      return Promise.reject(new Error(`does not compile: ${value}`))
    })
  })
  queue.push(entry('b'))
  t.same(isolate.entered, ['task'])
  isolate.spansNs = [30]
  task.resolve('code')
  await t.rejects(alone, { message: 'does not compile: code' })
  t.same([account.cpuNs, told.ended[0]?.totalNs], [34, 34])
  t.same(isolate.entered, ['task', 'b'])
})

const stay = fc.record({
  /** Of each entry that may go in; as many are told as do. */
  spans: fc.array(fc.nat(3_000_000), { minLength: 64, maxLength: 64 }),
  pushes: fc.array(fc.nat(4), { maxLength: 12 }),
  /** How far the clock of entries had got when it was looked at: entries, and per mille of the last of these. */
  looks: fc.array(fc.tuple(fc.integer({ min: 1, max: 64 }), fc.nat(1000), fc.boolean()), { maxLength: 4 }),
})

t.test('whatever is looked at or charged early: each account is charged its own entries, to the nanosecond', async () => {
  fc.assert(
    fc.property(fc.array(stay, { maxLength: 20, size: 'max' }), (stays) => {
      const isolate = fakeIsolate()
      const told = listener()
      const queue = queueOf(isolate, told, new EntryGate(1))
      const accounts = Array.from({ length: 5 }, () => new Account())
      const expected = new Map(accounts.map((account) => [account, 0]))
      const run = ({ spans, looks }: (typeof stays)[number]): void => {
        const stay = queue.stay!
        const given = spans.slice(0, stay.accounts.length)
        for (const [index, account] of stay.accounts.entries()) expected.set(account, expected.get(account)! + given[index]!)
        const seen = looks
          .map(([count, permille, isCharged]) => ({ at: Math.min(count, given.length) - 1, permille, isCharged }))
          .toSorted((a, b) => a.at - b.at || a.permille - b.permille)
        for (const { at, permille, isCharged } of seen) {
          stay.measured([...given.slice(0, at), (given[at]! * permille) / 1000])
          if (isCharged) queue.chargeEarly()
        }
        settle(isolate, ...given)
      }
      let pushed = 0
      for (const each of stays) {
        for (const index of each.pushes) queue.push(entry(`e${pushed++}`, accounts[index]))
        if (queue.stay !== undefined) run(each)
      }
      while (queue.stay !== undefined) run({ spans: Array<number>(64).fill(1), pushes: [], looks: [] })
      const sumNs = accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
      return (
        accounts.every((account) => account.cpuNs === expected.get(account)) &&
        isolate.entered.length === pushed &&
        isolate.entered.every((name, index) => name === `e${index}`) &&
        told.began.length === told.ended.length &&
        told.ended.reduce((sum, { totalNs }) => sum + totalNs, 0) === sumNs
      )
    }),
  )
})
