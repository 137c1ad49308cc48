import t from 'tap'
import { isolateWith } from './support/isolate.ts'

/** Long enough for the isolate's thread to get a core on any machine that is not stuck, in ms. */
const PATIENCE_MS = 30_000

t.test('at rest the clock is exact and stands', async (t) => {
  const { isolate } = await isolateWith(t)
  const first = await isolate.atRest(PATIENCE_MS)
  t.ok(first.isExact)
  t.ok(first.ns > 0)
  await new Promise((resolve) => setImmediate(resolve))
  t.same(isolate.cpu, first)
  t.equal(isolate.restedCpuNs, first.ns)
})

t.test('what runs counts, and what waits does not', async (t) => {
  const { isolate } = await isolateWith(t)
  const before = await isolate.atRest(PATIENCE_MS)
  await isolate.run('value', ['for (let i = 0; i < 3e7; i++); 0'])
  const loop = await isolate.atRest(PATIENCE_MS)
  await isolate.run('value', ['0'])
  const nothing = await isolate.atRest(PATIENCE_MS)
  t.ok([before, loop, nothing].every(({ isExact }) => isExact))
  t.ok(nothing.ns > loop.ns)
  t.ok(loop.ns - before.ns > nothing.ns - loop.ns, `${loop.ns - before.ns} ns, ${nothing.ns - loop.ns} ns`)
})

t.test('while a loop runs the clock is not exact, and goes on', async (t) => {
  const { isolate, next } = await isolateWith(t)
  const before = await isolate.atRest(PATIENCE_MS)
  isolate.enter('value', ['tell("begun"); for (;;);'])
  t.equal(await next(), 'begun')
  const first = isolate.cpu
  const second = await isolate.atRest(5)
  t.notOk(first.isExact)
  t.notOk(second.isExact)
  t.ok(second.ns > first.ns && first.ns >= before.ns)
  t.equal(isolate.restedCpuNs, before.ns)

  isolate.dispose()
  t.same(isolate.cpu, before)
  t.same(await isolate.atRest(PATIENCE_MS), before)
})

t.test('after an entry that waited for the host the clock is exact again', async (t) => {
  const { isolate, next } = await isolateWith(t)
  const run = isolate.run('value', ['tell("begun"); ask(1)'])
  t.equal(await next(), 'begun')
  t.equal(await run, 6)
  const after = await isolate.atRest(PATIENCE_MS)
  t.ok(after.isExact)
  t.same(isolate.cpu, after)
})
