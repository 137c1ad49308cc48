import t from 'tap'
import { isolateWith, RAN, SAID } from './support/isolate.ts'

const MIB = 1024 * 1024

t.test('nothing of the host is there', async (t) => {
  const { run } = await isolateWith(t)
  t.equal(
    await run('[typeof process, typeof require, typeof ivm, typeof boot].join()'),
    'undefined,undefined,undefined,undefined',
  )
})

t.test('a callback gives its answer back', async (t) => {
  const { run, asked } = await isolateWith(t)
  t.equal(await run('ask(7)'), '42')
  t.same(asked, [7])
})

t.test('code that does not compile is refused with its position', async (t) => {
  const code = { source: '(function () {\n return ] })', filename: 'broken.js' }
  const { isolate } = await isolateWith(t)
  await t.rejects(isolate.load('', code), { message: /Unexpected token.*broken\.js:2:9/ })
})

t.test('code that throws is refused, after it has run, and the isolate goes on', async (t) => {
  const { isolate, asked, run } = await isolateWith(t)
  await t.rejects(isolate.load('', { source: '(function () { ask(4); throw new TypeError("thrown") })', filename: 'f.js' }), {
    message: 'thrown',
  })
  t.same(asked, [4])
  t.equal(await run('1'), '1')
})

t.test('load resolves after the code has run, with its microtasks; its messages are reported', async (t) => {
  const { isolate, asked, messages, outsideOfBatches } = await isolateWith(t)
  const source = `(function () {
    for (let i = 0; i < 1e6; i++);
    ask(5); Promise.resolve().then(() => { ask(6); say('later') })
    return 'exports'
  })`
  await isolate.load('loaded', { source, filename: 'f.js' })
  t.same(asked, [5, 6])
  while (outsideOfBatches() === 0) await new Promise((resolve) => setImmediate(resolve))
  t.same(
    messages().map(([op, , , , text]) => [op, text]),
    [
      [RAN, 'loaded "exports"'],
      [SAID, 'later'],
    ],
  )
})

t.test('what is measured begins when all of it is given: the rest could run on another thread, unmeasured', async (t) => {
  const { isolate } = await isolateWith(t)
  isolate.resetEntryCpu()
  await isolate.measure(() => {
    const untilMs = performance.now() + 100
    while (isolate.readEntryCpu() === 0 && performance.now() < untilMs);
    t.equal(isolate.readEntryCpu(), 0)
    return isolate.collectGarbage()
  })
  t.equal(isolate.readEntryCpu(), 1)
})

t.test('what was measured since a reset is one entry; a task that fails adds nothing', async (t) => {
  const { isolate, run } = await isolateWith(t)
  const usedNs = (): number => (isolate.readEntryCpu() === 1 ? isolate.entryCpuNs[0]! : Number.NaN)
  const loop = { source: '(function () { for (let i = 0; i < 1e7; i++); })', filename: 'f.js' }
  const measured = <T>(task: () => Promise<T>): Promise<T> => isolate.measure(task)
  isolate.resetEntryCpu()
  await isolate.load('', loop, measured)
  const onceNs = usedNs()
  t.ok(onceNs > 1e6, `${onceNs} ns`)
  await isolate.load('', loop, measured)
  const twiceNs = usedNs()
  t.ok(twiceNs > onceNs + 1e6, `${twiceNs} ns, of which ${onceNs} the first time`)
  const fails = (): never => {
    throw new Error('fails')
  }
  await t.rejects(isolate.measure(fails), { message: 'fails' })
  const afterNs = usedNs()
  t.ok(afterNs >= twiceNs && afterNs < twiceNs + 1e6, `${afterNs} ns, and ${twiceNs} before`)
  await run('for (let i = 0; i < 1e7; i++); 0')
  isolate.resetEntryCpu()
  await isolate.measure(() => isolate.heapBytes())
  t.ok(usedNs() < onceNs)
})

t.test('the heap is measured with what it holds outside', async (t) => {
  const { isolate, run } = await isolateWith(t, 128)
  const before = await isolate.heapBytes()
  await run('globalThis.kept = Array.from({ length: 400_000 }, (_, i) => ({ i })); 0')
  const onHeap = await isolate.heapBytes()
  t.ok(onHeap - before >= 4 * MIB, `${onHeap - before} bytes more`)
  await run('globalThis.bytes = new Uint8Array(20 * 1024 * 1024).fill(1); 0')
  const outside = await isolate.heapBytes()
  t.ok(outside - onHeap >= 15 * MIB, `${outside - onHeap} bytes more`)
})

t.test('an endless loop is ended by dispose, which is reported once; to enter a disposed isolate is harmless', async (t) => {
  const { isolate, batch, nextTold } = await isolateWith(t)
  const left = batch('tell("begun"); for (;;);')
  const code = { source: '(function () {})', filename: 'f.js' }
  t.equal(await nextTold(), 'begun')
  const behind = Promise.allSettled([isolate.heapBytes(), isolate.load('', code)])
  isolate.dispose()
  isolate.dispose()
  t.ok(isolate.disposed)
  await left
  t.same(
    (await behind).map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  await t.rejects(isolate.heapBytes())
  await t.rejects(isolate.load('', code))
  isolate.push(1, 0, '2')
  isolate.enter()
})

t.test('a batch that waits when the isolate is disposed is reported as done', async (t) => {
  for (let round = 0; round < 50; round++) {
    const { isolate, batch } = await isolateWith(t)
    const left = batch('1')
    isolate.dispose()
    await left
  }
})

t.test('the event loop does not take down isolates that are idle when they are disposed', async (t) => {
  const rigs = await Promise.all(Array.from({ length: 8 }, () => isolateWith(t, 128)))
  // Threads have left all but the last by then.
  for (const { run } of rigs) t.equal(await run('globalThis.kept = new Array(8e6).fill(0); kept.length'), '8000000')
  const [thread, program] = [process.threadCpuUsage(), process.cpuUsage()]
  for (const { isolate } of rigs) isolate.dispose()
  const own = process.threadCpuUsage(thread)
  for (const { isolate } of rigs) while (isolate.heldBytes > 0) await new Promise((resolve) => setImmediate(resolve))
  const all = process.cpuUsage(program)
  const [ownUs, allUs] = [own.user + own.system, all.user + all.system]
  t.ok(ownUs * 4 < allUs, `${ownUs} us of ${allUs} us of CPU`)
})

t.test('an isolate that passes its memory limit is disposed, and what it said before is there', async (t) => {
  const { isolate, batch, messages } = await isolateWith(t, 16)
  await batch('1', 'say("before"); const kept = []; for (;;) kept.push({ a: 1 })', '3')
  t.ok(isolate.disposed)
  t.same(
    messages().map(([op, , , , text]) => [op, text]),
    [
      [RAN, '1'],
      [SAID, 'before'],
    ],
  )
})

t.test('whatever an entry keeps: where that is too much, the next does not begin any more', async (t) => {
  let disposed = 0
  for (let count = 20_000; count <= 400_000; count += 20_000) {
    const { isolate, batch, messages, entryCpuNs } = await isolateWith(t, 16)
    await batch('1', `globalThis.kept = Array.from({ length: ${count} }, (_, i) => [{ i }]); 2`, 'say("next"); 3')
    if (!isolate.disposed) continue
    disposed++
    t.notOk(messages().some(([, , , , text]) => text === 'next'))
    t.equal(entryCpuNs().length, 2, `${count}: the one that did it is the last that began`)
  }
  t.ok(disposed > 3 && disposed < 20, `${disposed} of 20`)
})
