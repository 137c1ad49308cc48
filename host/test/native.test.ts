import t from 'tap'
import { availableParallelism } from 'node:os'
import { createHash } from 'node:crypto'
import { isolateWith, type Rig } from './support/isolate.ts'
import { join } from 'node:path'
import { readdirSync, readFileSync } from 'node:fs'

const LOOP_FOR_EVER = 'tell("begun"); for (;;);'

function loop(count: number): string {
  return `for (let i = 0; i < ${count}; i++); 0`
}

function entryCpuNs({ isolate }: Rig): number[] {
  return [...isolate.entryCpuNs.subarray(0, isolate.readEntryCpu())]
}

t.test('the guest is given what it needs, and no more', async (t) => {
  const rig = await isolateWith(t)
  t.same(entryCpuNs(rig), [])
  t.equal(await rig.run('names'), 'tell,question,say,library,random')
})

t.test('it is known what each entry took, until the next batch begins', async (t) => {
  const rig = await isolateWith(t)
  await rig.batch(loop(0), loop(20_000_000), loop(0))
  const told = entryCpuNs(rig)
  t.equal(told.length, 3)
  t.ok(told.every((ns) => Number.isInteger(ns) && ns >= 0))
  t.ok(told[1]! > told[0]! && told[1]! > told[2]!, told.join())
  t.same(entryCpuNs(rig), told)
  rig.isolate.resetEntryCpu()
  t.same(entryCpuNs(rig), [])
  await rig.batch(loop(0))
  t.equal(entryCpuNs(rig).length, 1)
})

t.test('the host sees what a running entry has taken so far', async (t) => {
  const rig = await isolateWith(t)
  const left = rig.batch(loop(1000), LOOP_FOR_EVER)
  await rig.nextTold()
  const first = entryCpuNs(rig)
  t.equal(first.length, 2)
  let next = entryCpuNs(rig)
  while (next[1] === first[1]) {
    await new Promise((resolve) => setImmediate(resolve))
    next = entryCpuNs(rig)
  }
  t.equal(next[0], first[0])
  t.ok(next[1]! > first[1]!)
  rig.isolate.dispose()
  await left
})

t.test('isolates do not see the entries of each other', async (t) => {
  const [one, other] = [await isolateWith(t), await isolateWith(t)]
  const left = one.batch(LOOP_FOR_EVER)
  await one.nextTold()
  t.same(entryCpuNs(other), [])
  await other.batch(loop(10))
  t.equal(entryCpuNs(other).length, 1)
  t.equal(entryCpuNs(one).length, 1)
  one.isolate.dispose()
  await left
})

t.test('what other isolates did on its thread, since it was disposed, does not count', async (t) => {
  // More than there are threads.
  const others = await Promise.all(Array.from({ length: availableParallelism() + 6 }, () => isolateWith(t)))
  const wrong: string[] = []
  for (let round = 0; round < 16; round++) {
    const rig = await isolateWith(t)
    rig.isolate.resetEntryCpu()
    const measured = <T>(task: () => Promise<T>): Promise<T> => rig.isolate.measure(task)
    const ended = rig.isolate
      .load('', { source: `(function () { ${LOOP_FOR_EVER} })`, filename: 'f.js' }, measured)
      .catch(() => {})
    await rig.nextTold()
    // Its thread waits for the answer until then.
    await new Promise((resolve) => setImmediate(resolve))
    const left: Promise<void>[] = []
    rig.isolate.dispose()
    const beforeNs = entryCpuNs(rig)[0] ?? 0
    // As when the host's thread loses its core: the isolate's thread leaves, and turns to others, before the host sees its end.
    for (const other of others) {
      left.push(other.batch(loop(10_000_000)))
      while (other.messages().length === 0);
    }
    const toldNs = (entryCpuNs(rig)[0] ?? Infinity) - beforeNs
    await Promise.all([ended, ...left])
    const othersNs = others.map((other) => entryCpuNs(other)[0] ?? 0)
    if (toldNs >= Math.min(...othersNs)) wrong.push(`told ${toldNs} ns of an end, and loops took ${othersNs.join()} ns`)
  }
  // Collecting garbage or compiling takes as long now and then; counted to what was disposed, all 16 are.
  t.ok(wrong.length <= 3, `${wrong.length} of 16 are too long: ${wrong.join('; ')}`)
})

t.test('what V8 does between batches is known, of the isolate in which it does that', async (t) => {
  const [one, other] = [await isolateWith(t, 128), await isolateWith(t)]
  const replace = 'globalThis.kept ??= new Map(); for (let i = 0; i < 3000; i++) kept.set((Math.random() * 2e5) | 0, { i }); 0'
  await Promise.all([one.run('0'), other.run('0')])
  one.isolate.takeBetweenNs()
  other.isolate.takeBetweenNs()
  for (let round = 0; round < 300; round++) {
    await one.batch(replace)
    await other.batch(loop(0))
  }
  const [oneNs, otherNs] = [one.isolate.takeBetweenNs(), other.isolate.takeBetweenNs()]
  t.ok(oneNs > 3e6 && otherNs < oneNs / 4, `${oneNs} ns where garbage is made, and ${otherNs} where none is`)
  t.ok(one.isolate.takeBetweenNs() < oneNs / 10)
})

t.test('where a thread ends with what it ran, the CPU time of that is known', async (t) => {
  // All threads that isolated-vm keeps are busy, so what comes then has one of its own.
  for (let busy = 0; busy <= availableParallelism(); busy++) {
    const rig = await isolateWith(t)
    void rig.batch(LOOP_FOR_EVER)
    await rig.nextTold()
  }
  const rig = await isolateWith(t, 8)
  rig.isolate.resetEntryCpu()
  const source = '(function () { tell("begun"); const all = []; for (;;) all.push({}) })'
  const measured = <T>(task: () => Promise<T>): Promise<T> => rig.isolate.measure(task)
  const rejected = t.rejects(rig.isolate.load('', { source, filename: 'f.js' }, measured))
  await rig.nextTold()
  // Its thread waits for the answer until then.
  await new Promise((resolve) => setImmediate(resolve))
  const untilMs = performance.now() + 10_000
  let usedNs = 0
  while (!rig.isolate.disposed && performance.now() < untilMs) usedNs = entryCpuNs(rig)[0] ?? 0
  t.ok(rig.isolate.disposed && usedNs > 0)
  // As when the host's thread loses its core just then.
  const laterMs = performance.now() + 300
  while (performance.now() < laterMs);
  t.ok((entryCpuNs(rig)[0] ?? 0) >= usedNs, `${entryCpuNs(rig)[0]} ns, and ${usedNs} just before its end`)
  await rejected
})

t.test('what is held uses no CPU until it is resumed, and its end need not wait for that', async (t) => {
  const rig = await isolateWith(t)
  const { isolate } = rig
  const left = rig.batch(LOOP_FOR_EVER)
  await rig.nextTold()
  const untilStill = async (): Promise<number> => {
    for (;;) {
      const [before] = entryCpuNs(rig)
      await new Promise((resolve) => setTimeout(resolve, 20))
      const [after] = entryCpuNs(rig)
      if (before !== undefined && before === after) return after
    }
  }
  t.ok(isolate.suspend())
  const held = await untilStill()
  isolate.resume()
  while (entryCpuNs(rig)[0] === held) await new Promise((resolve) => setImmediate(resolve))
  t.ok(isolate.suspend(), 'again')
  await untilStill()
  isolate.dispose()
  await left
  t.notOk(isolate.suspend(), 'nothing is left to hold')
  isolate.resume()
})

t.test('an isolate that was held with nothing in it runs what comes after it is resumed', async (t) => {
  const { isolate, run } = await isolateWith(t)
  t.ok(isolate.suspend())
  const ran = run('6 * 7')
  isolate.resume()
  t.equal(await ran, '42')
})

/** Cores that each thread of this process may use, as the system lists them. */
function coresOfThreads(): string[] {
  return readdirSync('/proc/self/task').map(
    (thread) => /Cpus_allowed_list:\s*(\S+)/.exec(readFileSync(`/proc/self/task/${thread}/status`, 'utf8'))![1]!,
  )
}

t.test('isolates that come and go while they are held leave nothing behind', async (t) => {
  const threads = readdirSync('/proc/self/task').length
  for (let round = 0; round < 20; round++) {
    const { isolate, batch, nextTold } = await isolateWith(t)
    const left = batch(LOOP_FOR_EVER)
    await nextTold()
    t.ok(isolate.suspend())
    isolate.dispose()
    await left
  }
  t.ok(readdirSync('/proc/self/task').length <= threads + 8, 'threads of the pool are used again')
})

t.test('V8 may end an isolate at any moment: then there is nothing to hold', async (t) => {
  const { isolate, batch } = await isolateWith(t)
  await batch('const kept = []; for (;;) kept.push({})')
  t.ok(isolate.disposed)
  while (isolate.suspend()) await new Promise((resolve) => setImmediate(resolve))
  isolate.resume()
})

const skip = availableParallelism() === 1 ? 'it takes more than one core' : false

t.test('what is confined is kept to a few cores until it is not', { skip }, async (t) => {
  const { isolate, batch, nextTold } = await isolateWith(t)
  const left = batch(LOOP_FOR_EVER)
  await nextTold()
  const free = new Set(coresOfThreads()).size
  isolate.setAffinity()
  isolate.setAffinity()
  t.equal(new Set(coresOfThreads()).size, free + 1)
  isolate.dispose()
  isolate.clearAffinity()
  isolate.clearAffinity()
  t.equal(new Set(coresOfThreads()).size, free)
  await left
})

/** How long each thread of this process keeps a core before others have it, in ns, as the system lists it; old systems do not. */
function turnsOfThreads(): number[] {
  return readdirSync('/proc/self/task').flatMap((thread) => {
    const [, ns] = /^se\.slice\s*:\s*(\d+)/m.exec(readFileSync(`/proc/self/task/${thread}/sched`, 'utf8')) ?? []
    return ns === undefined ? [] : [Number(ns)]
  })
}

const noTurns = turnsOfThreads().length === 0 ? 'the system has no turns that a thread may choose' : false

t.test('what works for long takes long turns at a core, until it is done; so do helpers of V8', { skip: noTurns }, async (t) => {
  const { isolate, batch, nextTold } = await isolateWith(t)
  const left = batch(LOOP_FOR_EVER)
  await nextTold()
  const usual = turnsOfThreads().filter((ns) => ns < 1e8).length
  t.ok(usual > 0 && usual < turnsOfThreads().length, 'helpers have long turns, others have not')
  isolate.lengthenTurns()
  isolate.lengthenTurns()
  t.equal(turnsOfThreads().filter((ns) => ns < 1e8).length, usual - 1)
  isolate.dispose()
  isolate.resetTurns()
  isolate.resetTurns()
  t.equal(turnsOfThreads().filter((ns) => ns < 1e8).length, usual)
  await left
})

const native = join(import.meta.dirname, '../native')
const prebuilt = join(native, 'prebuilt')

t.test('every addon that is committed was built from the sources beside it', async (t) => {
  const hash = createHash('sha256')
  for (const file of readdirSync(native).toSorted()) if (/\.(?:cc|h)$/.test(file)) hash.update(readFileSync(join(native, file)))
  const source = hash.digest('hex')
  const files = readdirSync(prebuilt)
  const addons = files.filter((file) => file.endsWith('.node'))
  t.not(addons.length, 0)
  t.same(files.toSorted(), addons.flatMap((file) => [file, `${file}.source`]).toSorted())
  for (const addon of addons) {
    t.equal(readFileSync(join(prebuilt, `${addon}.source`), 'utf8').trim(), source, `${addon}: npm run build:addon`)
  }
})
