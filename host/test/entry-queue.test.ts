import { Account } from '@carpool/metering'
import t from 'tap'
import { EntryGate } from '../src/entry-gate.ts'
import { EntryQueue } from '../src/entry-queue.ts'
import { entry, fakeIsolate, firstEntry, listener, settle, turn } from './support/fake-isolate.ts'

const SHORT_NS = 5_000

t.test('entries run in order, and those that come meanwhile wait for the next stay', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  for (const name of 'abcdefgh') queue.push(entry(name))
  t.same(isolate.entered, ['a'])
  await settle(isolate, SHORT_NS)
  t.same(isolate.entered, ['a', 'b', 'c'])
  await settle(isolate, SHORT_NS, '1,1')
  t.same(isolate.entered, ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  await settle(isolate, SHORT_NS, '1,1,1,1')
  await settle(isolate, SHORT_NS)
  t.same(isolate.entered, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
  t.same(
    told.ended.map(({ accounts }) => accounts.length),
    [1, 2, 4, 1],
  )
  t.equal(queue.stay, undefined)
})

t.test('a stay is split by the spans that the guest tells, and evenly if it tells none', async (t) => {
  const isolate = fakeIsolate()
  const queue = new EntryQueue(isolate, listener(), new EntryGate(1))
  const entries = Array.from({ length: 11 }, () => entry('loop'))
  for (const each of entries) queue.push(each)
  await settle(isolate, 100)
  await settle(isolate, 100, '')
  await settle(isolate, 100, '1,2,3,4')
  await settle(isolate, 100, 'no,numbers')
  t.same(
    entries.map(({ account }) => account.cpuNs),
    [100, 50, 50, 10, 20, 30, 40, 25, 25, 25, 25],
  )
})

t.test('what it took to make the isolate is charged to nobody', async (t) => {
  const isolate = fakeIsolate(3_000_000)
  const queue = new EntryQueue(isolate, listener(), new EntryGate(1))
  const first = entry('a')
  queue.push(first)
  await settle(isolate, 7)
  t.equal(first.account.cpuNs, 7)
})

t.test('a stay ends only when the clock of the isolate stands', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  isolate.clock = { ns: 999, isExact: false }
  isolate.running.shift()?.resolve(undefined)
  await turn()
  t.equal(queue.stay, told.began[0])
  t.same([isolate.entered, told.ended, first.account.cpuNs], [['a'], [], 0])
  isolate.resting.shift()?.resolve({ ns: 700, isExact: true })
  await turn()
  t.same(told.ended, [told.began[0]])
  t.same([told.ended[0]?.totalNs, first.account.cpuNs], [700, 700])
  t.same(isolate.entered, ['a', 'b'])
})

t.test('a stay whose clock does not come to stand ends by estimate, and the rest is charged to the next', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  told.began[0]!.estimated(600)
  isolate.clock = { ns: 5_000, isExact: false }
  isolate.running.shift()?.resolve(undefined)
  await turn()
  isolate.resting.shift()?.resolve(isolate.clock)
  await turn()
  t.same([first.account.cpuNs, told.ended[0]?.totalNs], [600, 600])
  isolate.clock = { ns: 700, isExact: true }
  await settle(isolate, 50)
  t.same([second.account.cpuNs, told.ended[1]?.totalNs], [150, 150])
})

t.test('an entry that throws has run as well', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  isolate.clock = { ns: 40, isExact: true }
  isolate.running.shift()?.reject(new Error('thrown by user code'))
  await turn()
  await settle(isolate, 2)
  t.same([first.account.cpuNs, second.account.cpuNs], [40, 2])
  t.same([told.ended.length, told.lost.length], [2, 0])
})

t.test('work alone has a stay of its own, before the entries that wait, and settles when it is charged', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  queue.push(entry('a'))
  queue.push(entry('b'))
  const account = new Account()
  const work = Promise.withResolvers<string>()
  let isCharged = false
  const alone = queue.alone(account, () => {
    isolate.entered.push('alone')
    return work.promise
  })
  void alone.then(() => (isCharged = account.cpuNs === 30))
  await settle(isolate, 10)
  t.same(isolate.entered, ['a', 'alone'])
  t.same(told.began[1]?.accounts, [account])
  isolate.clock = { ns: 40, isExact: true }
  work.resolve('done')
  t.equal(await alone, 'done')
  t.ok(isCharged)
  t.same(isolate.entered, ['a', 'alone', 'b'])
})

t.test('work alone that fails is charged and fails, and the entries go on', async (t) => {
  const isolate = fakeIsolate()
  const queue = new EntryQueue(isolate, listener(), new EntryGate(1))
  const account = new Account()
  const alone = queue.alone(account, () => {
    isolate.clock = { ns: 30, isExact: true }
    return Promise.reject(new Error('does not compile'))
  })
  queue.push(entry('a'))
  await t.rejects(alone, { message: 'does not compile' })
  t.equal(account.cpuNs, 30)
  t.same(isolate.entered, ['a'])
})

t.test('what work alone takes says nothing of how many entries fit in a stay', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  for (const _ of 'abcdefghijk') queue.push(entry('loop'))
  await settle(isolate, SHORT_NS)
  await settle(isolate, SHORT_NS)
  const alone = queue.alone(new Account(), () => isolate.run('spans', []))
  await settle(isolate, SHORT_NS)
  await settle(isolate, 500_000_000)
  await alone
  t.same(
    told.began.map(({ accounts }) => accounts.length),
    [1, 2, 4, 1, 4],
  )
})

t.test('it is known who has not begun, and it can be taken out until it goes in', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [first, second] = [new Account(), new Account()]
  queue.push(firstEntry(1, first))
  t.strictSame([...queue.unbegun], [])
  queue.push(firstEntry(2, first))
  queue.push(firstEntry(3, second))
  queue.push(entry('fireTimer', second))
  t.strictSame([...queue.unbegun], [first, second])
  t.strictSame([...queue.resumed], [second])
  t.notOk(queue.drop(1), 'it has gone in')
  t.ok(queue.drop(2))
  t.notOk(queue.drop(2))
  t.strictSame([...queue.unbegun], [second])
  await settle(isolate, SHORT_NS)
  t.same([[...queue.unbegun], [...queue.resumed]], [[], []])
  await settle(isolate, SHORT_NS, '1,1')
  t.same(isolate.entered, ['invoke', 'invoke', 'fireTimer'])
  t.same(told.ran, [1, 3])
})

t.test('a guest waits for the gate behind those who asked before, and its delay is told', async (t) => {
  const gate = new EntryGate(1)
  const [mine, others] = [fakeIsolate(), fakeIsolate()]
  const told = listener()
  const [queue, other] = [new EntryQueue(mine, told, gate), new EntryQueue(others, listener(), gate)]
  other.push(entry('a'))
  queue.push({ ...entry('b'), readyAtMs: performance.now() - 40 })
  other.push(entry('c'))
  t.same([others.entered, mine.entered], [['a'], []])
  await settle(others, SHORT_NS)
  t.same([others.entered, mine.entered], [['a'], ['b']])
  await settle(mine, SHORT_NS)
  t.same([others.entered, mine.entered], [['a', 'c'], ['b']])
  t.equal(told.delaysMs.length, 1)
  t.ok(told.delaysMs[0]! >= 40)
})

t.test('a stay that has had its time steps aside, and gives its place back once', async (t) => {
  const gate = new EntryGate(1)
  const isolates = [fakeIsolate(), fakeIsolate(), fakeIsolate()] as const
  const queues = isolates.map((isolate) => new EntryQueue(isolate, listener(), gate))
  for (const queue of queues) queue.push(entry('a'))
  queues[0]!.stepAside()
  t.same(
    isolates.map(({ entered }) => entered.length),
    [1, 1, 0],
  )
  await settle(isolates[0], SHORT_NS)
  t.same(
    isolates.map(({ entered }) => entered.length),
    [1, 1, 0],
    'the place was given back before',
  )
  await settle(isolates[1], SHORT_NS)
  t.equal(isolates[2].entered.length, 1)
})

t.test('an isolate that is gone when its turn comes takes no place', async (t) => {
  const gate = new EntryGate(1)
  const [first, gone, last] = [fakeIsolate(), fakeIsolate(), fakeIsolate()]
  for (const isolate of [first, gone, last]) new EntryQueue(isolate, listener(), gate).push(entry('a'))
  gone.disposed = true
  await settle(first, SHORT_NS)
  t.same([gone.entered, last.entered], [[], ['a']])
})

t.test('those who wait for the charge are called back once, in order, after it and before the next stay', async (t) => {
  const isolate = fakeIsolate()
  const queue = new EntryQueue(isolate, listener(), new EntryGate(1))
  const events: string[] = []
  queue.whenCharged(() => events.push('idle'))
  t.same(events, ['idle'])
  t.notOk(queue.someoneWaits)
  const first = entry('a')
  queue.push(first)
  queue.push(entry('b'))
  for (const name of ['one', 'two']) {
    queue.whenCharged(() => events.push(`${name}: ${first.account.cpuNs} ns, entered ${isolate.entered.join()}`))
  }
  t.ok(queue.someoneWaits)
  t.same(events, ['idle'])
  await settle(isolate, 9)
  t.same(events, ['idle', 'one: 9 ns, entered a', 'two: 9 ns, entered a'])
  t.notOk(queue.someoneWaits)
  await settle(isolate, 9)
  t.equal(events.length, 3)
})

t.test('what is charged early is charged to whose turn it is, calls back, and is taken off the end', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  queue.push(entry('warm-up'))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  await settle(isolate, 0)
  const stay = told.began[1]!
  let calls = 0
  queue.whenCharged(() => calls++)
  stay.reached(second.account)
  stay.estimated(60.4)
  queue.chargeEarly()
  t.same([first.account.cpuNs, second.account.cpuNs, calls], [0, 60, 1])
  queue.chargeEarly()
  t.same([first.account.cpuNs, second.account.cpuNs, calls], [0, 60, 1])
  await settle(isolate, 100, '1,1')
  t.same([first.account.cpuNs, second.account.cpuNs, calls], [20, 80, 1])
  t.equal(told.ended.at(-1), stay)
  t.same([stay.totalNs, stay.unchargedNs(first.account), stay.unchargedNs(second.account)], [100, 0, 0])
})

t.test('charging early when nothing runs does nothing', async (t) => {
  const isolate = fakeIsolate()
  new EntryQueue(isolate, listener(), new EntryGate(1)).chargeEarly()
  t.same(isolate.entered, [])
})

t.test('an isolate that is lost in a stay is told once, its time is charged only as far as it was early', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  let calls = 0
  queue.whenCharged(() => calls++)
  told.began[0]!.estimated(25)
  queue.chargeEarly()
  isolate.disposed = true
  isolate.clock = { ns: 500, isExact: true }
  isolate.running.shift()?.reject(new Error('Isolate was disposed during execution'))
  await turn()
  t.same([told.lost, told.ended], [[told.began[0]], []])
  t.same([first.account.cpuNs, second.account.cpuNs, calls], [25, 0, 1])
  t.equal(queue.stay, undefined)

  queue.push(entry('c'))
  void queue.alone(new Account(), () => {
    isolate.entered.push('alone')
    return Promise.resolve()
  })
  queue.whenCharged(() => calls++)
  queue.chargeEarly()
  await turn()
  t.same(isolate.entered, ['a'])
  t.same([told.began.length, told.lost.length, told.ended.length, calls], [1, 1, 0, 2])
})

t.test('what the end of a stay brings about may enter at once', async (t) => {
  const isolate = fakeIsolate()
  const told = listener()
  const queue = new EntryQueue(isolate, told, new EntryGate(1))
  queue.push(entry('a'))
  queue.whenCharged(() => {
    t.equal(queue.stay, undefined)
    queue.push(entry('b'))
    t.equal(queue.stay, told.began[1])
  })
  await settle(isolate, 1)
  t.same(isolate.entered, ['a', 'b'])
  await settle(isolate, 1)
  t.equal(told.ended.length, 2)
  t.equal(queue.stay, undefined)
})
