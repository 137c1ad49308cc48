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

/** Each runs to its end without a step between two that V8 could interrupt. */
const BUFFERS = {
  'many buffers': `globalThis.kept = []; for (let i = 0; i < 48; i++) kept.push(new Uint8Array(2 ** 20).fill(1)); 1`,
  'one buffer': `globalThis.kept = new Uint8Array(48 * 2 ** 20).fill(1); 1`,
  'a buffer that grows': `globalThis.kept = new ArrayBuffer(0, { maxByteLength: 2 ** 27 }); kept.resize(48 * 2 ** 20); 1`,
  'memory of WebAssembly': `globalThis.kept = new WebAssembly.Memory({ initial: 768 }); 1`,
}
for (const [title, code] of Object.entries(BUFFERS)) {
  t.test(`an isolate that takes much says so: ${title}`, async (t) => {
    const rig = await isolateWith(t, 128)
    await rig.run('1')
    t.equal(rig.growths(), 0)
    t.equal(await rig.run(code), '1')
    t.ok(rig.growths() > 0)
    t.ok(rig.isolate.heldBytes > 32 * MEBIBYTE, `${rig.isolate.heldBytes} bytes`)
  })
}

t.test('what is taken and given back is no growth', async (t) => {
  const rig = await isolateWith(t, 128)
  const code = `'(' + Array.from({ length: 2000 }, (_, i) => '(function f' + i + '() { return [' + i + '] })').join(', ') + ')'`
  for (let round = 0; round < 30; round++) await rig.run(`eval(${code} + ${round}); JSON.parse(JSON.stringify([${code}])); 1`)
  t.equal(rig.growths(), 0)
  t.ok(rig.isolate.heldBytes < 32 * MEBIBYTE, `${rig.isolate.heldBytes} bytes`)
})

/** What V8 takes outside of the heap for some of it is freed on its own threads. */
const CHURNS = {
  'code': `for (let i = 0; i < 300; i++) new Function('let n = ' + i + '; ' + 'for (let j = 0; j < 9; j++) n += j;'.repeat(500) + 'return n')()`,
  'code that is made faster': `for (let i = 0; i < 200; i++) { const one = (0, eval)('(n) => n * ' + i); let n = 0; for (let j = 0; j < 2e5; j++) n += one(j) }`,
  'JSON': `const text = '[' + '1,'.repeat(3e4) + '1]'; for (let i = 0; i < 500; i++) JSON.stringify(JSON.parse(text))`,
  'patterns': `for (let i = 0; i < 50; i++) new RegExp('(a|b' + i + ')*' + 'c?'.repeat(500)).exec('ab'.repeat(1e4))`,
  'large numbers': `for (let i = 0; i < 300; i++) String(BigInt(i) ** 8000n)`,
  'texts of places': `for (let i = 0; i < 1000; i++) new Intl.DateTimeFormat('de', { timeZone: 'Asia/Tokyo' }).format(i)`,
  'cut texts': `for (let i = 0; i < 1000; i++) [...new Intl.Segmenter('en').segment('x '.repeat(1e2))]`,
}
for (const [title, code] of Object.entries(CHURNS)) {
  t.test(`what one entry takes and gives back is not what it holds: ${title}`, async (t) => {
    const rig = await isolateWith(t, 64)
    t.equal(await rig.run(`${code}; 1`), '1')
    const heldMb = rig.isolate.heldBytes / MEBIBYTE
    t.ok(heldMb < 64, `${heldMb} MiB`)
  })
}

/** In the heap each takes less than outside of it, where all its pieces are small. */
const SMALL = {
  'dates': 'new Temporal.PlainDate(2020, 1, 1)',
  'dates with a zone': `new Temporal.ZonedDateTime(0n, 'Europe/Berlin')`,
  'buffers of no bytes': 'new ArrayBuffer(0)',
  'buffers of a byte': 'new ArrayBuffer(1)',
}
for (const [title, one] of Object.entries(SMALL)) {
  t.test(`small pieces that are kept outside of the heap count, entry after entry: ${title}`, async (t) => {
    const rig = await isolateWith(t, 32)
    await rig.run('globalThis.kept = []')
    const fill = `for (let i = 0; i < 2e4; i++) kept.push(${one}); kept.length`
    let count = 0
    for (let told: string | undefined; (told = await rig.run(fill)) !== undefined; ) count = Number(told)
    t.ok(rig.isolate.disposed)
    t.ok(count > 1e5 && count < 5e5, `${count} were kept`)
  })
}

t.test('garbage of small pieces ends no isolate, however much there is of it', async (t) => {
  const rig = await isolateWith(t, 8)
  for (const one of Object.values(SMALL)) t.equal(await rig.run(`for (let i = 0; i < 1e6; i++) ${one}; 'done'`), 'done', one)
})

/** A pattern whose stack outside of the heap grows to what V8 allows it, and that goes on for long. */
const BACKTRACKS = `/(?:(?:a|a)|b)*(?:(?:a|a)|b)*c/.exec('ab'.repeat(4e6)); 1`

t.test('what is taken outside of the heap counts with it, and ends the isolate', async (t) => {
  const rig = await isolateWith(t, 8)
  await rig.batch(BACKTRACKS)
  t.ok(rig.isolate.disposed)
  t.same(rig.messages(), [])
})

t.test('who takes more and more outside of the heap is ended for that, and takes nothing from others', async (t) => {
  addon.setMemoryStock(192 * MEBIBYTE)
  t.teardown(() => addon.setMemoryStock(Number.MAX_SAFE_INTEGER))
  // One that is given up, as when the stock is used up, fails the test.
  const rig = await isolateWith(t, 8)
  await rig.batch(
    `const kept = []; const cut = new Intl.Segmenter('en').segment('x'.repeat(1e5)); for (;;) kept.push(cut[Symbol.iterator]())`,
  )
  t.ok(rig.isolate.disposed)
})

t.test('buffers count with the heap', async (t) => {
  const rig = await isolateWith(t, 32)
  await rig.batch(`globalThis.buffer = new Uint8Array(20 * 2 ** 20); globalThis.text = ${flat(16)}; 1`)
  t.ok(rig.isolate.disposed)
  const within = await isolateWith(t, 64)
  t.equal(await within.run(`globalThis.buffer = new Uint8Array(20 * 2 ** 20); globalThis.text = ${flat(16)}; 1`), '1')
  t.equal(await within.run(`for (let i = 0; i < 200; i++) new Uint8Array(20 * 2 ** 20); 2`), '2', 'and garbage does not')
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
