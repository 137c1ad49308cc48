import t, { type Test } from 'tap'
import { Guest, guestOf, run } from './support/guest.ts'

const NS_PER_MS = 1_000_000
/** Here functions look at the clock to run for a given time. */
const RUNNING = { clock: 'running' } as const
/** The guest's clock and ours are the same, but not as fine. */
const TICK_NS = NS_PER_MS

function nowNs(): number {
  return Number(Temporal.Now.instant().epochNanoseconds / 1000n) * 1000
}

t.test('The first time nothing was measured, then each entry has a span', (t) => {
  const guest = guestOf(`return new Response('hello')`)
  guest.call()
  t.same(guest.spans(1), [])
  for (const count of [1, 3, 64]) {
    for (let entry = 0; entry < count; entry++) guest.call()
    const spans = guest.spans(count)
    t.equal(spans.length, count)
    t.ok(
      spans.every((span) => Number.isFinite(span) && span >= 0),
      spans.join(),
    )
  }
  t.end()
})

t.test('There is a span for every kind of entry', (t) => {
  const guest = guestOf(`setTimeout(() => {}); fetch('http://up/').catch(() => {}); return new Response()`)
  guest.spans(1)
  const invocation = guest.start()
  guest.fireTimer(1)
  guest.settleFetch([...guest.fetches.keys()][0] ?? 0, { error: 'gone' })
  guest.cancel(invocation)
  t.equal(guest.spans(4).length, 4)
  t.same(guest.spans(5), [])
  t.end()
})

t.test('Entries that find nothing to do have a span as well', (t) => {
  const guest = guestOf(`return new Response()`)
  guest.spans(1)
  guest.fireTimer(99)
  guest.settleFetch(99, { error: 'gone' })
  guest.cancel(99)
  t.equal(guest.spans(3).length, 3)
  t.end()
})

t.test('More entries than were measured have no spans', (t) => {
  const guest = guestOf(`return new Response()`)
  guest.spans(0)
  for (let entry = 0; entry < 300; entry++) guest.call()
  t.equal(guest.spans(128).length, 128)
  t.same(guest.spans(129), [])
  t.same(guest.spans(301), [])
  t.end()
})

t.test('A span is as long as its entry, also when the entry throws or ends in a microtask', (t) => {
  const guest = guestOf(
    `const spin = () => { for (const from = performance.now(); performance.now() - from < 3;); }
    const path = new URL(request.url).pathname
    if (path === '/short') return new Response()
    if (path === '/micro') { await null; spin(); return new Response() }
    spin()
    if (path === '/throw') throw new Error('thrown')
    return new Response()`,
    RUNNING,
  )
  const paths = ['short', 'long', 'throw', 'short', 'micro', 'short']
  guest.spans(1)
  const from = nowNs()
  for (const path of paths) guest.start({ url: `http://localhost/${path}` })
  const spans = guest.spans(paths.length)
  const elapsedNs = nowNs() - from
  for (const [index, path] of paths.entries()) if (path !== 'short') t.ok((spans[index] ?? 0) >= 3 * NS_PER_MS, path)
  t.ok(total(spans) <= elapsedNs + TICK_NS, `${total(spans)} of ${elapsedNs} ns`)
  t.end()
})

t.test('Spans are measured while the clock of the function stands', (t) => {
  const guest = guestOf(`
    const from = performance.now()
    const limit = +new URL(request.url).searchParams.get('count')
    for (let count = 0; count < limit; count++);
    return new Response(performance.now() - from)`)
  guest.spans(1)
  const counts = [0, 0, 5e7, 0, 0]
  for (const count of counts) t.equal(guest.call({ url: `http://localhost/?count=${count}` }).body, '0')
  const spans = guest.spans(counts.length)
  // One that had to wait for a core may be long as well, but hardly all of them.
  const shortest = Math.min(...spans.filter((_, index) => counts[index] === 0))
  t.ok((spans[2] ?? 0) > shortest, spans.join())
  t.end()
})

/** What user code may replace, so that the clock would go wrong if the runtime used it; in an order in which all can be done. */
const TAMPERING: Record<string, string> = {
  'Temporal.Now.instant': `Temporal.Now.instant = () => ({ epochNanoseconds: 10n ** 30n })`,
  'the getter of epochNanoseconds': `Object.defineProperty(Temporal.Instant.prototype, 'epochNanoseconds', { get: () => 10n ** 30n })`,
  'Temporal.Now': `Object.defineProperty(Temporal, 'Now', { value: { instant: () => ({ epochNanoseconds: 0n }) } })`,
  'Temporal': `globalThis.Temporal = undefined`,
  'methods of Number and BigInt': `
    for (const made of [Number, BigInt]) {
      made.prototype.valueOf = made.prototype.toString = () => '1e300'
      Object.defineProperty(made.prototype, Symbol.toPrimitive, { value: () => 1e300 })
    }`,
  'Number': `globalThis.Number = () => 1e300`,
  'Date.now': `Date.now = () => 1e300; globalThis.Date = undefined`,
  'setters of Float64Array.prototype': `
    for (const target of [Float64Array.prototype, Object.getPrototypeOf(Float64Array.prototype), Object.prototype]) {
      for (let index = 0; index < 130; index++) Object.defineProperty(target, index, { get: () => 1e300, set() { throw new Error('set') } })
    }`,
  'Float64Array': `globalThis.Float64Array = undefined`,
  'performance.now': `performance.now = () => 1e300; Performance.prototype.now = () => 1e300; globalThis.performance = { now: () => -1 }`,
  'Math and String': `Array.prototype.join = String.prototype.concat = () => 'x'; globalThis.String = () => 'x'; globalThis.Math = undefined`,
}

t.test('User code that replaces parts of the language does not change the spans', (t) => {
  for (const [name, tampering] of Object.entries(TAMPERING)) spansAreRight(t, name, tampering)
  spansAreRight(t, 'all of it', Object.values(TAMPERING).join('\n'))
  t.end()
})

function spansAreRight(t: Test, name: string, tampering: string): void {
  const guest = new Guest().load(
    `(() => {
    const clock = performance.now.bind(performance)
    const spin = () => { for (const from = clock(); clock() - from < 2;); }
    let calls = 0
    return { default: { async fetch() { if (calls++ === 0) { ${tampering} } spin(); return new Response('spun') } } }
  })()`,
    RUNNING,
  )
  guest.spans(1)
  const from = nowNs()
  for (let entry = 0; entry < 3; entry++) t.equal(guest.call().body, 'spun', name)
  const spans = guest.spans(3)
  const elapsedNs = nowNs() - from
  t.equal(spans.length, 3, name)
  t.ok(
    spans.every((span) => span >= 2 * NS_PER_MS),
    `${name}: ${spans.join()}`,
  )
  t.ok(total(spans) <= elapsedNs + TICK_NS, `${name}: ${total(spans)} of ${elapsedNs} ns`)
  guest.isolate.dispose()
}

function total(spans: readonly number[]): number {
  return spans.reduce((sum, span) => sum + span, 0)
}

t.test('A clock that runs never goes back, whatever user code replaces, and is finer than a millisecond', (t) => {
  const read = `
    const clock = performance.now.bind(performance)
    const times = Array.from({ length: 20_000 }, clock)
    const isMonotonic = times.every((time, index) => index === 0 || time >= times[index - 1])`
  t.same(run(`${read}; return [isMonotonic, times[0] >= 0, times.some((time) => time % 1 !== 0)]`, {}, RUNNING), [
    true,
    true,
    true,
  ])
  const goBack = `let ns = 10n ** 18n
    Temporal.Now.instant = () => ({ epochNanoseconds: (ns -= 1000n) })
    Object.defineProperty(Temporal.Instant.prototype, 'epochNanoseconds', { get: () => (ns -= 1000n) })
    Date.now = () => Number(ns -= 1000n)`
  t.same(run(`${goBack}; ${read}; return [isMonotonic, times.at(-1) > times[0], times.at(-1) < 1e9]`, {}, RUNNING), [
    true,
    true,
    true,
  ])
  t.end()
})
