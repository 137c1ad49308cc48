import { Account } from '../src/accounting/account.ts'
import t from 'tap'
import type { Charged, PermitSource } from '../src/scheduler/entry-queue.ts'
import { batchLog, entry, fakeIsolate, firstEntry, queueOf, schedulerOf, settle, turn } from './support/fake-isolate.ts'

const SHORT_NS = 5_000

function whoever(charged: () => void): Charged {
  return { runsOn: false, charged }
}

t.test('entries run in order, and those that come meanwhile wait for the next batch', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  for (const name of 'abcdefgh') queue.push(entry(name))
  t.same([isolate.entered, isolate.running], [['a'], 1])
  settle(isolate, SHORT_NS)
  t.same(isolate.entered, ['a', 'b', 'c'])
  settle(isolate, 1, 1)
  t.same(isolate.entered, ['a', 'b', 'c', 'd', 'e', 'f', 'g'])
  settle(isolate, 1, 1, 1, 1)
  settle(isolate, SHORT_NS)
  t.same(isolate.entered, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
  t.same(
    log.ended.map(({ accounts }) => accounts.length),
    [1, 2, 4, 1],
  )
  t.same([queue.batch, isolate.running], [undefined, 0])
})

t.test('the messages of a batch are read before it is charged, however it ends', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  for (const name of 'abc') queue.push(entry(name))
  settle(isolate, 1)
  t.same(log.readAfter, [0])
  isolate.disposed = true
  settle(isolate, 1)
  t.same([log.readAfter, log.lost.length], [[0, 1], 1])
})

t.test('work alone has a batch of its own, before the entries that wait, and settles when it is charged', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  queue.push(entry('a'))
  queue.push(entry('b'))
  const account = new Account()
  const work = Promise.withResolvers<string>()
  let isCharged = false
  const alone = queue.runAlone(account, (measured) =>
    measured(() => {
      isolate.entered.push('alone')
      return work.promise
    }),
  )
  void alone.then(() => (isCharged = account.cpuNs === 30))
  settle(isolate, 10)
  t.same(isolate.entered, ['a', 'alone'])
  t.same(log.began[1]?.accounts, [account])
  isolate.entryCpuNs = [30]
  work.resolve('done')
  t.equal(await alone, 'done')
  t.ok(isCharged)
  t.same(isolate.entered, ['a', 'alone', 'b'])
})

t.test('work alone that is behind an entry runs when that has, whatever runs when it comes', async (t) => {
  const isolate = fakeIsolate()
  const queue = queueOf(isolate, batchLog(), schedulerOf(1))
  queue.push(entry('a'))
  queue.push(entry('b'))
  const last = entry('c')
  queue.push(last)
  const work = (): Promise<void> => Promise.resolve(void isolate.entered.push('alone'))
  const alone = queue.runAlone(new Account(), (measured) => measured(work), last)
  settle(isolate, 600_000)
  settle(isolate, 600_000)
  settle(isolate, 600_000)
  await alone
  t.same(isolate.entered, ['a', 'b', 'c', 'alone'])
})

t.test('work alone that fails is charged and fails, and the entries go on', async (t) => {
  const isolate = fakeIsolate()
  const queue = queueOf(isolate, batchLog(), schedulerOf(1))
  const account = new Account()
  const alone = queue.runAlone(account, (measured) =>
    measured(() => {
      isolate.entryCpuNs = [30]
      return Promise.reject(new Error('does not compile'))
    }),
  )
  queue.push(entry('a'))
  await t.rejects(alone, { message: 'does not compile' })
  t.equal(account.cpuNs, 30)
  t.same(isolate.entered, ['a'])
})

t.test('what work alone takes says nothing of how many entries fit in a batch', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  for (const _ of 'abcdefghijk') queue.push(entry('loop'))
  settle(isolate, SHORT_NS)
  const work = Promise.withResolvers<void>()
  const alone = queue.runAlone(new Account(), (measured) => measured(() => work.promise))
  settle(isolate, 1, 1)
  isolate.entryCpuNs = [500_000_000]
  work.resolve()
  await alone
  t.same(
    log.began.map(({ accounts }) => accounts.length),
    [1, 2, 1, 4],
  )
})

t.test('it is known who has not begun, and it can be taken out until it goes in', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  const [first, second] = [new Account(), new Account()]
  queue.push(firstEntry(1, first))
  t.strictSame([...queue.notStarted], [])
  queue.push(firstEntry(2, first))
  queue.push(firstEntry(3, second))
  queue.push(entry('fireTimer', second))
  t.strictSame([...queue.notStarted], [first, second])
  t.strictSame([...queue.resuming], [second])
  t.notOk(queue.remove(1), 'it has gone in')
  t.ok(queue.remove(2))
  t.notOk(queue.remove(2))
  t.strictSame([...queue.notStarted], [second])
  settle(isolate, SHORT_NS)
  t.same([[...queue.notStarted], [...queue.resuming]], [[], []])
  settle(isolate, 1, 1)
  t.same(isolate.entered, ['invoke', 'invoke', 'fireTimer'])
  t.same(log.ran, [1, 3])
})

t.test('a guest waits for a permit behind those who asked before, and its delay is counted', async (t) => {
  const scheduler = schedulerOf(1)
  const [mine, others] = [fakeIsolate(), fakeIsolate()]
  const delaysUs: number[] = []
  const measured: PermitSource = {
    request: (request) => scheduler.request(request),
    runDelay: { add: (us) => void delaysUs.push(us) },
    sharedDelay: { add: () => {} },
  }
  const [queue, other] = [queueOf(mine, batchLog(), measured), queueOf(others, batchLog(), scheduler)]
  other.push(entry('a'))
  queue.push(entry('b', new Account(), performance.now() - 40))
  other.push(entry('c'))
  t.same([others.entered, mine.entered], [['a'], []])
  settle(others, SHORT_NS)
  t.same([others.entered, mine.entered], [['a'], ['b']])
  settle(mine, SHORT_NS)
  t.same([others.entered, mine.entered], [['a', 'c'], ['b']])
  t.equal(delaysUs.length, 1)
  t.ok(delaysUs[0]! >= 40_000)
})

t.test('a batch whose first slice is over releases its permit, once', async (t) => {
  const scheduler = schedulerOf(1)
  const isolates = [fakeIsolate(), fakeIsolate(), fakeIsolate()] as const
  const queues = isolates.map((isolate) => queueOf(isolate, batchLog(), scheduler))
  for (const queue of queues) queue.push(entry('a'))
  queues[0]!.releasePermit()
  t.same(
    isolates.map(({ entered }) => entered.length),
    [1, 1, 0],
  )
  settle(isolates[0], SHORT_NS)
  t.same(
    isolates.map(({ entered }) => entered.length),
    [1, 1, 0],
    'the permit was released before',
  )
  settle(isolates[1], SHORT_NS)
  t.equal(isolates[2].entered.length, 1)
})

t.test('an isolate that is gone when it gets a permit keeps none', async (t) => {
  const scheduler = schedulerOf(1)
  const [first, gone, last] = [fakeIsolate(), fakeIsolate(), fakeIsolate()]
  for (const isolate of [first, gone, last]) queueOf(isolate, batchLog(), scheduler).push(entry('a'))
  gone.disposed = true
  settle(first, SHORT_NS)
  t.same([gone.entered, last.entered], [[], ['a']])
})

t.test('those who wait for the charge are called back once, in order, after it and before the next batch', async (t) => {
  const isolate = fakeIsolate()
  const queue = queueOf(isolate, batchLog(), schedulerOf(1))
  const events: string[] = []
  queue.whenCharged(whoever(() => events.push('idle')))
  t.same(events, ['idle'])
  t.notOk(queue.hasWaiters)
  const first = entry('a')
  queue.push(first)
  queue.push(entry('b'))
  for (const name of ['one', 'two']) {
    queue.whenCharged(whoever(() => events.push(`${name}: ${first.account.cpuNs} ns, entered ${isolate.entered.join()}`)))
  }
  t.ok(queue.hasWaiters)
  t.same(events, ['idle'])
  settle(isolate, 9)
  t.same(events, ['idle', 'one: 9 ns, entered a', 'two: 9 ns, entered a'])
  t.notOk(queue.hasWaiters)
  settle(isolate, 9)
  t.equal(events.length, 3)
})

t.test(
  'what runs on for a client that has left waits for the end of the batch, others only until they are charged',
  async (t) => {
    const isolate = fakeIsolate()
    const log = batchLog()
    const queue = queueOf(isolate, log, schedulerOf(1))
    const running = entry('a')
    queue.push(running)
    const called: string[] = []
    queue.whenCharged({ runsOn: true, charged: () => called.push(`left: ${running.account.cpuNs} ns`) })
    t.notOk(queue.hasWaiters)
    queue.whenCharged(whoever(() => called.push('answered')))
    t.ok(queue.hasWaiters)
    log.began[0]!.measured([25])
    queue.chargeEarly()
    t.same(called, ['answered'])
    t.notOk(queue.hasWaiters)
    settle(isolate, 500)
    t.same(called, ['answered', 'left: 500 ns'])
  },
)

t.test('charging early when nothing runs does nothing', async (t) => {
  const isolate = fakeIsolate()
  queueOf(isolate, batchLog(), schedulerOf(1)).chargeEarly()
  t.same(isolate.entered, [])
})

t.test('an isolate that is lost in a batch is reported once, its time is charged only as far as it was early', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  const [first, second] = [entry('a'), entry('b')]
  queue.push(first)
  queue.push(second)
  let calls = 0
  queue.whenCharged(whoever(() => calls++))
  log.began[0]!.measured([25])
  queue.chargeEarly()
  isolate.disposed = true
  settle(isolate, 500)
  t.same([log.lost, log.ended], [[log.began[0]], []])
  t.same([first.account.cpuNs, second.account.cpuNs, calls], [25, 0, 1])
  t.equal(queue.batch, undefined)

  queue.push(entry('c'))
  void queue.runAlone(new Account(), () => {
    isolate.entered.push('alone')
    return Promise.resolve()
  })
  queue.whenCharged(whoever(() => calls++))
  queue.chargeEarly()
  queue.batchDone()
  await turn()
  t.same(isolate.entered, ['a'])
  t.same([log.began.length, log.lost.length, log.ended.length, calls], [1, 1, 0, 2])
})

t.test('what the end of a batch brings about may enter at once', async (t) => {
  const isolate = fakeIsolate()
  const log = batchLog()
  const queue = queueOf(isolate, log, schedulerOf(1))
  queue.push(entry('a'))
  queue.whenCharged(
    whoever(() => {
      t.equal(queue.batch, undefined)
      queue.push(entry('b'))
      t.equal(queue.batch, log.began[1])
    }),
  )
  settle(isolate, 1)
  t.same(isolate.entered, ['a', 'b'])
  settle(isolate, 1)
  t.equal(log.ended.length, 2)
  t.equal(queue.batch, undefined)
})
