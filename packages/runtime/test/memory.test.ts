import { runInThisContext } from 'node:vm'
import t, { type Test } from 'tap'
import { run } from './support/guest.ts'

/** What code gives in a function and in Node.js itself. */
async function same(t: Test, code: string): Promise<void> {
  const here: unknown = JSON.parse(JSON.stringify(await runInThisContext(`(async () => { ${code} })()`)))
  t.strictSame(run(code), here, code)
}

const TRY = `const attempt = (act) => { try { return String(act()) } catch (error) { return error.name + ': ' + error.message } };`

t.test('ArrayBuffer is what it was', async (t) => {
  await same(
    t,
    `const b = new ArrayBuffer(4, { maxByteLength: 16 }); const bytes = new Uint8Array(b); b.resize(16); bytes[15] = 7;
     const moved = b.transfer(); const fixed = moved.transferToFixedLength(8);
     return [moved.resizable, moved.maxByteLength, moved.detached, b.detached, fixed.resizable, fixed.byteLength, bytes.length]`,
  )
  await same(
    t,
    `class Mine extends ArrayBuffer { own() { return this.byteLength } }
     const mine = new Mine(3, { maxByteLength: 5 }); const sliced = mine.slice(1);
     return [mine.own(), mine instanceof ArrayBuffer, mine.constructor.name, sliced instanceof Mine, sliced.own(),
       new Uint8Array(2).buffer.constructor === ArrayBuffer, ArrayBuffer.isView(new DataView(mine)), ArrayBuffer[Symbol.species] === ArrayBuffer,
       ArrayBuffer.prototype.constructor === ArrayBuffer, ArrayBuffer.name, ArrayBuffer.length, ArrayBuffer.prototype.transfer.length,
       Object.prototype.toString.call(mine), String(ArrayBuffer)]`,
  )
  await same(
    t,
    `${TRY} return [attempt(() => ArrayBuffer(1)), attempt(() => new ArrayBuffer(-1)), attempt(() => new ArrayBuffer(9, { maxByteLength: 8 })),
       attempt(() => new ArrayBuffer(1, { maxByteLength: undefined }).resizable), attempt(() => new ArrayBuffer().byteLength),
       attempt(() => ArrayBuffer.prototype.transfer.call({}))]`,
  )
})

/** How many of something fit into an isolate before it says no, and what it says. */
const FIT = `const fit = (make) => { const kept = []; try { for (;;) kept.push(make()) } catch (error) { const told = error.name + ': ' + error.message; return [kept.splice(0).length, told] } };`

t.test('a buffer that can be resized counts with all that it may grow to, also where it was cloned', (t) => {
  const [made, cloned, moved, plain] = run(`${FIT}
    const big = () => new ArrayBuffer(0, { maxByteLength: 2 ** 22 });
    const one = big();
    const mover = (kept) => { let buffer = big(); return () => { buffer = buffer.transfer(); if (kept.push(buffer) > 1000) throw new Error('enough') } };
    return [fit(big), fit(() => structuredClone(one)), fit(mover([])), fit(() => new ArrayBuffer(2 ** 22))]`) as Array<
    [number, string]
  >
  t.ok(plain![0] > 10 && plain![0] < 1_000, String(plain))
  t.ok(Math.abs(made![0] - plain![0]) <= plain![0] / 4 + 1, `${String(made)} of ${String(plain)}`)
  t.equal(made![1], 'RangeError: Array buffer allocation failed')
  t.ok(cloned![0] <= plain![0] + 2, String(cloned))
  t.equal(moved![1], 'Error: enough', 'what is moved counts once')
  t.end()
})

t.test('what Intl makes is what it was', async (t) => {
  const names =
    '["Collator","DateTimeFormat","DisplayNames","DurationFormat","ListFormat","Locale","NumberFormat","PluralRules","RelativeTimeFormat","Segmenter"]'
  await same(
    t,
    `const options = { DisplayNames: { type: 'region' } };
     return ${names}.map((name) => { const made = new Intl[name]('de', options[name]); return [Intl[name].name, Intl[name].length, made instanceof Intl[name],
       made.constructor === Intl[name], Object.prototype.toString.call(made), String(Intl[name]), Object.getOwnPropertyNames(Intl[name]).sort(),
       class extends Intl[name] {}.prototype instanceof Intl[name]] })`,
  )
  await same(
    t,
    `${TRY} return [...${names}.map((name) => attempt(() => typeof Intl[name]('de'))), attempt(() => new Intl.NumberFormat('no such locale!')),
       attempt(() => new Intl.Segmenter().segment(Symbol()))]`,
  )
  await same(
    t,
    `class Mine extends Intl.NumberFormat { own() { return this.format(1234.5) } }
     const legacy = Intl.DateTimeFormat.call(Object.create(Intl.DateTimeFormat.prototype), 'en', { timeZone: 'UTC' });
     return [new Mine('de').own(), new Mine('de') instanceof Intl.NumberFormat, Intl.DateTimeFormat('en', { timeZone: 'UTC' }).format(0), legacy.format(0)]`,
  )
  await same(
    t,
    `const segments = new Intl.Segmenter('en', { granularity: 'word' }).segment('two words');
     return [[...segments].map(({ segment }) => segment), [...segments].length, segments.containing(5).segment,
       segments[Symbol.iterator]().next().value.segment, String(segments[Symbol.iterator]), new Intl.Segmenter().segment().containing(0).segment]`,
  )
  await same(
    t,
    `const utc = { timeZone: 'UTC' }; const day = Temporal.PlainDate.from('2026-02-03');
     return [new Date(0).toLocaleString('de', utc), new Date(0).toLocaleDateString('en', utc), new Date(0).toLocaleTimeString('en', utc), (1e6).toLocaleString('de'),
       (10n ** 9n).toLocaleString('en'), 'a'.localeCompare('b'), 'ä'.localeCompare('z', 'de'), 'ä'.localeCompare('z', 'sv'), 'a'.localeCompare('A', 'de', { sensitivity: 'base' }),
       day.toLocaleString('de'), [day.toLocaleString('en'), Date.prototype.toLocaleString.length, 'x'.localeCompare.name], [1, 2].toLocaleString('de')]`,
  )
})

t.test('what Intl makes counts, and what is left of it counts no more', (t) => {
  const [dates, segments, passing] = run(`${FIT}
    const cut = new Intl.Segmenter('de').segment('x'.repeat(200_000));
    let calls = 0;
    return [fit(() => new Intl.DateTimeFormat('de')), fit(() => cut[Symbol.iterator]()),
      fit(() => { new Intl.DateTimeFormat('de'); new Date(0).toLocaleString('en', { timeZone: 'UTC' }); if (++calls === 3_000) throw new Error('enough') })]`) as Array<
    [number, string]
  >
  t.ok(dates![0] > 50 && dates![0] < 2_000, String(dates))
  t.match(dates![1], /^RangeError: A formatter does not fit/)
  t.ok(segments![0] > 20 && segments![0] < 1_000, String(segments))
  t.equal(passing![1], 'Error: enough')
  t.end()
})

t.test('there is nothing else in Intl', (t) => {
  t.strictSame((run(`return Object.getOwnPropertyNames(Intl)`) as string[]).toSorted(), [
    'Collator',
    'DateTimeFormat',
    'DisplayNames',
    'DurationFormat',
    'ListFormat',
    'Locale',
    'NumberFormat',
    'PluralRules',
    'RelativeTimeFormat',
    'Segmenter',
    'getCanonicalLocales',
    'supportedValuesOf',
  ])
  const made = run(`return Object.getOwnPropertyNames(Intl).filter((name) => /^[A-Z]/.test(name))
    .flatMap((name) => Object.getOwnPropertyNames(Intl[name].prototype).map((method) => name + '.' + method)).filter((name) => /imize|segment|calculate/.test(name))`)
  t.strictSame(made, ['Locale.maximize', 'Locale.minimize', 'Segmenter.segment'], 'methods that make objects')
  const [count, told] = run(`${FIT} const locale = new Intl.Locale('de'); return fit(() => locale.maximize())`) as [
    number,
    string,
  ]
  t.ok(count < 40_000, String(count))
  t.match(told, /^RangeError/)
  t.end()
})
