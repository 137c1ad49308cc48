import t from 'tap'
import { addon } from '../src/addon.ts'
import { isolateWith, RAN, type Rig } from './support/isolate.ts'

const MEBIBYTE = 1024 * 1024

/** A text of so many MiB, flat. */
const flat = (mb: number): string =>
  `(() => { let text = '\\u1234'; while (text.length < ${(mb * MEBIBYTE) / 2}) text += text; text.charCodeAt(5); return text })()`

/** Most memory that the isolate held, as of the end of its last batch, in MiB. */
function peakMb({ isolate }: Rig): number {
  isolate.readEntryCpu()
  return isolate.peakBytes / MEBIBYTE
}

t.test('what one step takes beyond the limit ends the isolate, and what it would have answered is not said', async (t) => {
  for (const [limitMb, mb] of [
    [8, 16],
    [8, 64],
    [32, 64],
    [128, 256],
  ] as const) {
    const rig = await isolateWith(t, limitMb)
    await rig.batch('"before"', `globalThis.kept = ${flat(mb)}; "after"`, '"next"')
    t.ok(rig.isolate.disposed, `${mb} MiB under ${limitMb}`)
    t.same(
      rig.messages().map(([op, , , , text]) => [op, text]),
      [[RAN, 'before']],
    )
  }
})

t.test('garbage ends no isolate, however much there is of it', async (t) => {
  const rig = await isolateWith(t, 32)
  t.equal(await rig.run(`for (let i = 0; i < 20; i++) ${flat(16)}; "done"`), 'done')
  t.equal(await rig.run(`for (let i = 0; i < 5; i++) { ${flat(64)}; 0 } "done"`), 'done')
  t.notOk(rig.isolate.disposed)
  t.ok(peakMb(rig) > 64, `${peakMb(rig)} MiB at most`)
})

t.test('the peak is that of the entry that took the memory, at its end', async (t) => {
  const rig = await isolateWith(t, 64)
  await rig.run('1')
  const beforeMb = peakMb(rig)
  t.ok(beforeMb < 8, `${beforeMb} MiB before`)
  await rig.run(`globalThis.kept = ${flat(32)}; 1`)
  t.ok(peakMb(rig) > 32, `${peakMb(rig)} MiB`)
  await rig.run('globalThis.kept = 0; 1')
  t.ok(peakMb(rig) > 32, 'and it is remembered')
})

t.test('an isolate that takes much says so', async (t) => {
  const rig = await isolateWith(t, 64)
  await rig.run('1')
  t.equal(rig.growths(), 0)
  await rig.run(`globalThis.kept = ${flat(32)}; 1`)
  t.ok(rig.growths() > 0)
  t.ok(rig.isolate.heldBytes > 32 * MEBIBYTE, `${rig.isolate.heldBytes} bytes`)
})

t.test('what isolates have had beyond their limits they give back', async (t) => {
  // As much as three of them need at a time: one that is disposed gives its part back when its thread is done with it.
  addon.setMemoryStock(200 * MEBIBYTE)
  t.teardown(() => addon.setMemoryStock(Number.MAX_SAFE_INTEGER))
  for (let round = 0; round < 8; round++) {
    const { isolate, batch } = await isolateWith(t, 8)
    await batch(`globalThis.kept = ${flat(64)}`)
    t.ok(isolate.disposed)
  }
  const { run } = await isolateWith(t, 8)
  for (let round = 0; round < 5; round++) t.equal(await run(`${flat(64)}; "done"`), 'done')
})
