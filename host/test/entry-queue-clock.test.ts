import type { Measured } from '@carpool/isolate'
import { Account } from '@carpool/metering'
import fc from 'fast-check'
import t from 'tap'
import { EntryGate } from '../src/entry-gate.ts'
import { EntryQueue } from '../src/entry-queue.ts'
import { entry, fakeIsolate, listener, settle, turn, type FakeIsolate } from './support/fake-isolate.ts'

/** What it took to make the isolate, by its own clock, which is never that of entries. */
const BOOT_NS = 3_000_000

function clocked(): FakeIsolate {
  return fakeIsolate(BOOT_NS, true)
}

t.test(
  'every entry is charged what the clock of entries says, one alone as well, and not what that of the isolate says',
  async (t) => {
    const isolate = clocked()
    const told = listener()
    const queue = new EntryQueue(isolate, told, new EntryGate(1))
    const entries = Array.from('abc', (name) => entry(name))
    for (const each of entries) queue.push(each)
    t.same([isolate.entered, isolate.running.length], [['a'], 1], 'one entry goes in before spans, which waits for it')
    await settle(isolate, 999, '7')
    t.same(isolate.entered, ['a', 'b', 'c'])
    await settle(isolate, 999, '100,1')
    t.same(
      entries.map(({ account }) => account.cpuNs),
      [7, 100, 1],
    )
    t.same(
      told.ended.map(({ totalNs }) => totalNs),
      [7, 101],
    )
    t.equal(queue.stay, undefined)
  },
)

t.test('a stay ends without waiting for the thread to leave the isolate', async (t) => {
  const isolate = clocked()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const first = entry('a')
  queue.push(first)
  queue.push(entry('b'))
  isolate.clock = { ns: 5_000_000, isExact: false }
  isolate.running.shift()?.resolve('40')
  await turn()
  t.same([isolate.resting.length, told.ended.length, first.account.cpuNs], [0, 1, 40])
  t.same(isolate.entered, ['a', 'b'])
})

t.test('what is charged early is what each has so far, and the end charges the rest', async (t) => {
  const isolate = clocked()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [mine, other] = [new Account(), new Account()]
  for (const name of 'abc') queue.push(entry(name))
  for (const account of [mine, other, mine]) queue.push(entry('d', account))
  await settle(isolate, 10, '10')
  await settle(isolate, 10, '5,5')
  const stay = told.began.at(-1)!
  t.equal(stay.accounts.length, 3)
  let calls = 0
  queue.whenCharged(() => calls++)
  stay.measured([40, 5])
  queue.chargeEarly()
  t.same([mine.cpuNs, other.cpuNs, calls], [40, 5, 1])
  queue.chargeEarly()
  t.same([mine.cpuNs, other.cpuNs, calls], [40, 5, 1])
  await settle(isolate, 999, '40,9,6')
  t.same([mine.cpuNs, other.cpuNs, calls, stay.totalNs], [46, 9, 1, 55])
})

t.test('an entry that throws is charged like any other', async (t) => {
  const isolate = clocked()
  const queue = new EntryQueue(isolate, listener(), new EntryGate(1))
  const thrower = entry('throws')
  queue.push(thrower)
  // What an entry throws is lost: only spans answers.
  await settle(isolate, 0, '12')
  t.equal(thrower.account.cpuNs, 12)
})

t.test('without spans, what was seen of each is charged, and nothing by the clock of the isolate', async (t) => {
  const isolate = clocked()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const entries = Array.from('abc', (name) => entry(name))
  for (const each of entries) queue.push(each)
  await settle(isolate, 700, '')
  told.began[1]!.measured([30])
  queue.chargeEarly()
  told.began[1]!.measured([30, 4])
  await settle(isolate, 700, '')
  t.same(
    entries.map(({ account }) => account.cpuNs),
    [0, 30, 4],
  )
  t.same(
    told.ended.map(({ totalNs }) => totalNs),
    [0, 34],
  )
  t.same([isolate.resting.length, queue.stay], [0, undefined])
})

t.test('a stay whose spans cannot be asked for ends as well', async (t) => {
  const isolate = clocked()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  told.began[0]!.measured([33])
  isolate.running.shift()?.reject(new Error('no memory for it'))
  await turn()
  t.same([first.account.cpuNs, told.ended.length, isolate.entered], [33, 1, ['a', 'b']])
  await settle(isolate, 0, '5')
  t.equal(second.account.cpuNs, 5)
})

t.test('an isolate that is lost is charged what is known, by the entry', async (t) => {
  const isolate = clocked()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  queue.push(entry('warm-up'))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  await settle(isolate, 10, '10')
  told.began[1]!.measured([20, 30])
  queue.chargeEarly()
  isolate.disposed = true
  isolate.running.shift()?.reject(new Error('Isolate was disposed during execution'))
  await turn()
  t.same([first.account.cpuNs, second.account.cpuNs], [20, 30])
  t.same([told.ended.length, told.lost, queue.stay], [1, [told.began[1]], undefined])
})

t.test('work alone is charged the sum of the tasks that it had measured, whether they fail or not', async (t) => {
  const isolate = clocked()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const account = new Account()
  const task = Promise.withResolvers<string>()
  const alone = queue.alone(account, async (measured: Measured) => {
    const value = await measured(() => {
      isolate.entered.push('task')
      return task.promise
    })
    await measured(() => Promise.reject(new Error(`does not compile: ${value}`)))
  })
  queue.push(entry('b'))
  t.same([isolate.entered, isolate.running.length], [['measure', 'task'], 1])
  task.resolve('code')
  await settle(isolate, 0, '30')
  t.same([account.cpuNs, isolate.entered], [0, ['measure', 'task', 'measure']])
  const rejected = t.rejects(alone, { message: 'does not compile: code' })
  await settle(isolate, 0, '4')
  await rejected
  t.same([account.cpuNs, told.ended[0]?.totalNs], [34, 34])
  t.same(isolate.entered, ['measure', 'task', 'measure', 'b'])
})

const stay = fc.record({
  /** Of each entry that may go in; as many are told as do. */
  spans: fc.array(fc.nat(3_000_000), { minLength: 64, maxLength: 64 }),
  pushes: fc.array(fc.nat(4), { maxLength: 12 }),
  /** How far the clock of entries had got when it was looked at: entries, and per mille of the last of these. */
  looks: fc.array(fc.tuple(fc.integer({ min: 1, max: 64 }), fc.nat(1000), fc.boolean()), { maxLength: 4 }),
  isolateNs: fc.nat(5_000_000),
})

t.test('whatever is looked at or charged early: each account is charged its own entries, to the nanosecond', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stay, { maxLength: 20, size: 'max' }), async (stays) => {
      const isolate = clocked()
      const told = listener()
      const queue = new EntryQueue(isolate, told, new EntryGate(1))
      const accounts = Array.from({ length: 5 }, () => new Account())
      const expected = new Map(accounts.map((account) => [account, 0]))
      const run = async ({ spans, looks, isolateNs }: (typeof stays)[number]): Promise<void> => {
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
        await settle(isolate, isolateNs, given.join())
      }
      for (const each of stays) {
        for (const index of each.pushes) queue.push(entry('loop', accounts[index]))
        if (queue.stay !== undefined) await run(each)
      }
      while (queue.stay !== undefined) await run({ spans: Array<number>(64).fill(1), pushes: [], looks: [], isolateNs: 0 })
      const sumNs = accounts.reduce((sum, { cpuNs }) => sum + cpuNs, 0)
      return (
        accounts.every((account) => account.cpuNs === expected.get(account)) &&
        told.ended.reduce((sum, { totalNs }) => sum + totalNs, 0) === sumNs
      )
    }),
  )
})
