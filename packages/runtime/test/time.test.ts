import { runInThisContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { Guest, guestOf, run } from './support/guest.ts'

/** All that reads a clock, as text of code that gives a number or a text. */
const CLOCKS: Readonly<Record<string, string>> = {
  'Date.now()': `Date.now()`,
  'new Date()': `new Date().getTime()`,
  'new Date() by name': `new Date.prototype.constructor().getTime()`,
  'Reflect.construct(Date)': `Reflect.construct(Date, []).getTime()`,
  'Reflect.construct(Date) for another class': `Date.prototype.getTime.call(Reflect.construct(Date, [], Object))`,
  'a subclass of Date': `new (class Later extends Date {})().getTime()`,
  'a subclass of Date that calls super': `new (class Later extends Date { constructor() { super() } })().getTime()`,
  'performance.now()': `performance.now()`,
  'performance.timeOrigin': `performance.timeOrigin + performance.now()`,
  'Temporal.Now.instant()': `Temporal.Now.instant().epochNanoseconds.toString()`,
  'Temporal.Now.zonedDateTimeISO()': `Temporal.Now.zonedDateTimeISO().toString()`,
  'Temporal.Now.zonedDateTimeISO(zone)': `Temporal.Now.zonedDateTimeISO('Asia/Tokyo').toString()`,
  'Temporal.Now.plainDateTimeISO()': `Temporal.Now.plainDateTimeISO().toString()`,
  'Temporal.Now.plainTimeISO()': `Temporal.Now.plainTimeISO().toString()`,
  'format of Intl.DateTimeFormat': `formatter.format()`,
  'format of Intl.DateTimeFormat, of undefined': `formatter.format.call(null, undefined)`,
  'formatToParts of Intl.DateTimeFormat': `JSON.stringify(formatter.formatToParts())`,
  'event.timeStamp': `new Event('x').timeStamp`,
  'the time that is left': `ctx.getRemainingTimeInMillis()`,
}
/** Too coarse for that to be seen. */
const COARSE_CLOCKS: Readonly<Record<string, string>> = {
  'Date()': `Date()`,
  'Temporal.Now.plainDateISO()': `Temporal.Now.plainDateISO().toString()`,
}
const READ = `
  const formatter = new Intl.DateTimeFormat('en', { hour: 'numeric', minute: 'numeric', second: 'numeric', fractionalSecondDigits: 3 })
  const read = (ctx) => [${Object.values(CLOCKS)
    .map((code) => `(() => ${code})()`)
    .join()}]`

/** Has the real clock go on in the middle of each entry. */
function passTime(guest: Guest): void {
  guest.onLog = () => {
    const fromMs = Date.now()
    while (Date.now() - fromMs < 3);
  }
}

const READ_TWICE = `(() => { ${READ}
  return { default: { async fetch(request, env, ctx) {
    const first = read(ctx); console.log('wait'); const second = read(ctx)
    await null; console.log('wait'); await Promise.resolve()
    return Response.json([first, second, read(ctx)])
  } } }
})()`

t.test('Within an entry and its microtasks every clock stands', (t) => {
  const guest = new Guest().load(READ_TWICE)
  passTime(guest)
  const [first, second, third] = JSON.parse(guest.call().body) as unknown[][]
  for (const [index, name] of Object.keys(CLOCKS).entries())
    t.same([second?.[index], third?.[index]], [first?.[index], first?.[index]], name)
  t.end()
})

t.test('If it is to run, every clock does', (t) => {
  const guest = new Guest().load(READ_TWICE, { clock: 'running' })
  passTime(guest)
  const [first, second, third] = JSON.parse(guest.call().body) as unknown[][]
  for (const [index, name] of Object.keys(CLOCKS).entries()) {
    t.not(second?.[index], first?.[index], name)
    t.not(third?.[index], second?.[index], name)
  }
  t.end()
})

t.test('All clocks tell the same time', (t) => {
  const guest = guestOf(`
    const ms = Date.now(), date = new Date(ms), instant = Temporal.Instant.fromEpochMilliseconds(ms), zoned = instant.toZonedDateTimeISO(Temporal.Now.timeZoneId())
    return Response.json([
      [new Date().getTime(), ms], [performance.timeOrigin + performance.now(), ms], [Date(), date.toString()], [Date(2020, 1, 1), date.toString()],
      [Temporal.Now.instant().toString(), instant.toString()], [Temporal.Now.zonedDateTimeISO().toString(), zoned.toString()],
      [Temporal.Now.zonedDateTimeISO('Asia/Tokyo').toString(), instant.toZonedDateTimeISO('Asia/Tokyo').toString()],
      [Temporal.Now.plainDateTimeISO().toString(), zoned.toPlainDateTime().toString()], [Temporal.Now.plainDateISO().toString(), zoned.toPlainDate().toString()],
      [Temporal.Now.plainTimeISO().toString(), zoned.toPlainTime().toString()], [new Intl.DateTimeFormat().format(), new Intl.DateTimeFormat().format(ms)],
    ])`)
  for (const [told, expected] of JSON.parse(guest.call().body) as unknown[][]) t.equal(told, expected)
  t.end()
})

t.test('The time is that at which the entry began, and goes on from one to the next', (t) => {
  const guest = new Guest()
  passTime(guest)
  const loadedFrom = Date.now()
  guest.load(`(() => {
    const times = [Date.now()]; console.log('wait'); times.push(Date.now())
    const note = () => { times.push(Date.now(), performance.now()); console.log('wait') }
    return { default: { async fetch() {
      note(); await new Promise((resolve) => setTimeout(resolve, 1)); note(); await fetch('http://up/').catch(() => {}); note()
      return Response.json(times)
    } } }
  })()`)
  const startedFrom = Date.now()
  const number = guest.start()
  const firedFrom = Date.now()
  guest.fireTimer(1)
  const settledFrom = Date.now()
  guest.settleFetch(1, { ok: false, message: 'gone' })
  const to = Date.now()
  const [loaded = 0, laterLoaded, started = 0, startedMs = 0, fired = 0, firedMs = 0, settled = 0, settledMs = 0] = JSON.parse(
    guest.answers.get(number)!.body,
  ) as number[]
  const order = [loadedFrom, loaded, startedFrom, started, firedFrom, fired, settledFrom, settled, to]
  t.same(
    order,
    order.toSorted((a, b) => a - b),
  )
  t.equal(laterLoaded, loaded)
  t.ok(startedMs < firedMs && firedMs < settledMs, `${startedMs}, ${firedMs}, ${settledMs}`)
  t.end()
})

t.test('A clock that stands has no fractions of a millisecond', (t) => {
  t.same(run(`return [performance.now() % 1, Number(Temporal.Now.instant().epochNanoseconds % 1_000_000n)]`), [0, 0])
  t.end()
})

/** What there is to see of a constructor, without the clock that it reads. */
const LOOKS = `
  const describe = (object) => Reflect.ownKeys(object).map((key) => {
    const { value, ...rest } = Object.getOwnPropertyDescriptor(object, key)
    const text = (part) => typeof part === 'function' ? [part.name, part.length, Function.prototype.toString.call(part), 'prototype' in part, Object.getPrototypeOf(part) === Function.prototype] : typeof part
    return [String(key), text(value), Object.entries(rest).map(([name, part]) => [name, text(part)].join())].join()
  })
  const attempt = (code) => { try { return String(code()) } catch (error) { return error.name + ': ' + error.message } }
  class Later extends Date { get later() { return true } }
  const looks = [
    describe(Date), describe(Date.prototype), describe(Temporal.Now), describe(Intl.DateTimeFormat.prototype), describe(Function.prototype),
    Function.prototype.toString.call(Date), Date.name, Date.length, typeof Date(), Object.prototype.toString.call(Date),
    Date.prototype.constructor === Date, new Date() instanceof Date, new Date(0).constructor === Date, Object.getPrototypeOf(new Date()) === Date.prototype,
    new Later() instanceof Later, new Later(5).getTime(), new Later(5).later, Object.getPrototypeOf(Later) === Date, new Later(2020, 1, 2).getTime(),
    Reflect.construct(Date, [7], Later).later, Object.getPrototypeOf(Reflect.construct(Date, [], Array)) === Array.prototype,
    Date.UTC(2020, 1), Date.parse('2020-02-30T00:00:00Z'), new Date('x').getTime(), new Date(undefined).getTime(), new Date(null).getTime(), new Date(new Date(9)).getTime(),
    new Date({ [Symbol.toPrimitive]: () => '2020-01-01' }).getTime(), new Date(1e99).getTime(), new Date(2020).getTime(), new Date(2020, 0, 1, 2, 3, 4, 5, 6).getTime(),
    attempt(() => new Date(1n)), attempt(() => new Date(Symbol('s'))), attempt(() => Date.prototype.getTime.call({})), attempt(() => new Date.now()),
    attempt(() => Temporal.Now.zonedDateTimeISO('Nowhere/None')), attempt(() => Temporal.Now.instant.call(null) instanceof Temporal.Instant), attempt(() => new Temporal.Now.instant()),
    attempt(() => Intl.DateTimeFormat.prototype.format).split(':')[0], attempt(() => Intl.DateTimeFormat.prototype.formatToParts.call({})),
    attempt(() => new Intl.DateTimeFormat().formatRange(undefined, 1)), attempt(() => new Intl.DateTimeFormat().format(NaN)),
    (() => { const format = new Intl.DateTimeFormat('en', { timeZone: 'UTC' }); const one = format.format; return [one === format.format, one.name, one.length, one(0), format.formatToParts(0).length, describe(one)] })(),
    attempt(() => Function.prototype.toString.call({})), attempt(() => Function.prototype.toString.call(1)), attempt(() => Function.prototype.toString.call(class A { })),
    structuredClone(new Date(3)).constructor === Date, JSON.stringify(new Date(4)), +new Date(6), new Date(8) + '',
  ]
  return looks`

t.test('In all but the clock they are like those of the language', (t) => {
  const expected = JSON.parse(JSON.stringify(runInThisContext(`(() => { ${LOOKS} })()`))) as unknown[]
  const looks = run(LOOKS) as unknown[]
  t.equal(looks.length, expected.length)
  for (const [index, look] of looks.entries()) t.same(look, expected[index], JSON.stringify(expected[index])?.slice(0, 80))
  t.end()
})

t.test('new Date gives what it gives elsewhere, whatever it is given', (t) => {
  const guest = guestOf(
    `const args = await request.json(); return Response.json([new Date(...args).getTime(), new (class extends Date {})(...args).getTime(), Date.UTC(...args)])`,
  )
  const argument = fc.oneof(
    fc.integer({ min: -300_000, max: 300_000 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom('2020-01-01', 'x', '', null, true),
    // The time of an invalid date is NaN, which JSON turns into null.
    fc.date({ noInvalidDate: true }).map((date) => date.getTime()),
  )
  fc.assert(
    fc.property(fc.array(argument, { minLength: 1, maxLength: 9 }), (args) => {
      const { body } = guest.call({ method: 'POST', bodyKind: 'text', body: JSON.stringify(args) })
      const ofArgs = args as [number]
      t.same(
        JSON.parse(body),
        JSON.parse(JSON.stringify([new Date(...ofArgs).getTime(), new Date(...ofArgs).getTime(), Date.UTC(...ofArgs)])),
        JSON.stringify(args),
      )
    }),
    { numRuns: 200 },
  )
  t.end()
})

t.test('Coarse clocks are there as well', (t) => {
  const read = Object.values(COARSE_CLOCKS).join()
  const [date, plain] = run(`return [${read}]`) as string[]
  t.equal(new Date(date ?? '').toString(), date)
  t.match(plain, /^\d{4}-\d\d-\d\d$/)
  t.end()
})

/** Here functions read a clock that goes on within an entry. */
const RUNNING = { clock: 'running' } as const

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
