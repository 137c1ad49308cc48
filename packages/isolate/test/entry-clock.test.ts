import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import t, { type Test } from 'tap'
import { entryClock } from '../src/entry-clock.ts'
import { Bootstrap, GuestIsolate } from '../src/index.ts'

/** Long enough for the isolate's thread to get a core on any machine that is not stuck, in ms. */
const PATIENCE_MS = 30_000

const BOOT = new Bootstrap(`(function boot(names, begun, begin, end) {
  return {
    loop(count) { begin?.(); for (let i = 0; i < count; i++); },
    loopForEver() { begin(); begun(); for (;;); },
    hoard() { begin(); const kept = []; for (;;) kept.push({}) },
    spans: () => end(),
    names: () => names,
  }
})`)

async function made(t: Test): Promise<{ isolate: GuestIsolate; begun: Promise<void> }> {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const isolate = await GuestIsolate.create({
    bootstrap: BOOT,
    entryNames: ['loop', 'loopForEver', 'hoard', 'spans', 'names'],
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
  return { isolate, begun }
}

async function spans(isolate: GuestIsolate): Promise<number[]> {
  return String(await isolate.run('spans', []))
    .split(',')
    .map(Number)
}

const skip = entryClock === undefined ? 'the entry clock is not built for this platform and version of Node.js' : false

t.test('every isolate has the entry clock where it is built, and its guest is given begin and end', async (t) => {
  const { isolate } = await made(t)
  t.equal(isolate.hasEntryClock, entryClock !== undefined)
  t.equal(await isolate.run('names', []), entryClock === undefined ? 'begun' : 'begun,begin,end')
  t.same(isolate.spans, [])
})

t.test('the guest is told what each entry took, once', { skip }, async (t) => {
  const { isolate } = await made(t)
  for (const count of [0, 20_000_000, 0]) isolate.enter('loop', [count])
  const told = await spans(isolate)
  t.equal(told.length, 3)
  t.ok(told.every((ns) => Number.isInteger(ns) && ns >= 0))
  t.ok(told[1]! > told[0]! && told[1]! > told[2]!, told.join())
  t.equal(await isolate.run('spans', []), '')
  t.same(isolate.spans, told, 'whoever looks before the answer is here sees the same')
  isolate.forgetSpans()
  t.same(isolate.spans, [])
})

t.test('the host sees what a running entry has taken so far', { skip }, async (t) => {
  const { isolate, begun } = await made(t)
  isolate.enter('loop', [1000])
  isolate.enter('loopForEver', [])
  await begun
  const first = isolate.spans
  t.equal(first.length, 2)
  let next = isolate.spans
  while (next[1] === first[1]) {
    await new Promise((resolve) => setImmediate(resolve))
    next = isolate.spans
  }
  t.equal(next[0], first[0])
  t.ok(next[1]! > first[1]!)
  isolate.dispose()
})

t.test('isolates do not see the entries of each other', { skip }, async (t) => {
  const [one, other] = [await made(t), await made(t)]
  one.isolate.enter('loopForEver', [])
  await one.begun
  t.same(other.isolate.spans, [])
  await other.isolate.run('loop', [10])
  t.same((await spans(other.isolate)).length, 1)
  t.equal(one.isolate.spans.length, 1)
})

t.test(
  'what other isolates did between two entries of a stay, on the thread of either, counts to neither',
  { skip },
  async (t) => {
    const rigs = await Promise.all(Array.from({ length: 8 }, () => made(t)))
    const isolates = rigs.map(({ isolate }) => isolate)
    const wrong: string[] = []
    for (const isolate of [...isolates, ...isolates]) {
      isolate.enter('loop', [100])
      // As when the host's thread loses its core between the two: the isolate's thread leaves.
      const rest = await isolate.atRest(PATIENCE_MS)
      t.ok(rest.isExact)
      const others = isolates.filter((other) => other !== isolate)
      const othersNs = await Promise.all(
        others.map(async (other) => {
          other.enter('loop', [3_000_000])
          return (await spans(other))[0] ?? 0
        }),
      )
      isolate.enter('loop', [100])
      const told = await spans(isolate)
      if (Math.max(...told) >= Math.min(...othersNs))
        wrong.push(`told ${told.join()} ns of loops of 100, and loops of 3000000 took ${othersNs.join()} ns`)
    }
    // Collecting garbage or compiling takes a loop of 100 as long now and then; counted to the wrong entry, every second one is.
    t.ok(wrong.length <= 3, `${wrong.length} of 16 are too long: ${wrong.join('; ')}`)
  },
)

t.test('what is held uses no CPU until it is resumed, and its end need not wait for that', { skip }, async (t) => {
  const { isolate, begun } = await made(t)
  isolate.enter('loopForEver', [])
  await begun
  const untilStill = async (): Promise<number> => {
    for (;;) {
      const [before] = isolate.spans
      await new Promise((resolve) => setTimeout(resolve, 20))
      const [after] = isolate.spans
      if (before !== undefined && before === after) return after
    }
  }
  t.ok(isolate.hold())
  const held = await untilStill()
  isolate.resume()
  while (isolate.spans[0] === held) await new Promise((resolve) => setImmediate(resolve))
  t.ok(isolate.hold(), 'again')
  await untilStill()
  const gone = t.rejects(isolate.run('names', []))
  isolate.dispose()
  await gone
  t.notOk(isolate.hold(), 'nothing is left to hold')
  isolate.resume()
})

t.test('an isolate that was held with nothing in it runs what comes after it is resumed', { skip }, async (t) => {
  const { isolate } = await made(t)
  t.ok(isolate.hold())
  const ran = isolate.run('names', [])
  isolate.resume()
  t.equal(await ran, 'begun,begin,end')
})

/** Cores that each thread of this process may use, as the system lists them. */
function coresOfThreads(): string[] {
  return readdirSync('/proc/self/task').map(
    (thread) => /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/self/task/${thread}/status`, 'utf8'))![1]!,
  )
}

t.test('isolates that come and go while they are held leave nothing behind', { skip }, async (t) => {
  const threads = readdirSync('/proc/self/task').length
  for (let round = 0; round < 20; round++) {
    const { isolate, begun } = await made(t)
    isolate.enter('loopForEver', [])
    await begun
    t.ok(isolate.hold())
    isolate.dispose()
  }
  t.ok(readdirSync('/proc/self/task').length <= threads + 8, 'threads of the pool are used again')
})

t.test('V8 may end an isolate at any moment: then there is nothing to hold', { skip }, async (t) => {
  const { isolate } = await made(t)
  await t.rejects(isolate.run('hoard', []))
  t.ok(isolate.disposed)
  while (isolate.hold()) await new Promise((resolve) => setImmediate(resolve))
  isolate.resume()
})

const oneCore = availableParallelism() === 1 ? 'it takes more than one core' : skip

t.test('what is confined is kept to a few cores until it is not', { skip: oneCore }, async (t) => {
  const { isolate, begun } = await made(t)
  isolate.enter('loopForEver', [])
  await begun
  const free = new Set(coresOfThreads()).size
  isolate.confine()
  isolate.confine()
  t.equal(new Set(coresOfThreads()).size, free + 1)
  isolate.dispose()
  isolate.unconfine()
  isolate.unconfine()
  t.equal(new Set(coresOfThreads()).size, free)
})
