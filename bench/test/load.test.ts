import fc from 'fast-check'
import t from 'tap'
import { arrivalsAtOnce, evenArrivals, poissonArrivals } from '../src/lib/load/arrivals.ts'
import { distributionOf, endLine, endOf, goodPerSecond, latencyMs } from '../src/lib/load/call-summary.ts'
import { MAX_BODY_CHARACTERS, type Call } from '../src/lib/load/load-order.ts'
import { seededRandom, seedOf } from '../src/lib/load/random.ts'
import { ResponseReader, type Answer } from '../src/lib/load/response-reader.ts'

t.test('calls at once are all due at the beginning', async (t) => {
  t.strictSame([...arrivalsAtOnce(3)], [0, 0, 0])
})

t.test('even arrivals keep the rate of each phase, one phase after the other', async (t) => {
  const phases = [
    { callsPerSecond: 4, durationMs: 1000 },
    { callsPerSecond: 0, durationMs: 500 },
    { callsPerSecond: 2, durationMs: 1000 },
  ]
  t.strictSame([...evenArrivals(phases)], [0, 250, 500, 750, 1500, 2000])
})

t.test('even arrivals ascend, are as many as the rate says, and lie in their phase', async (t) => {
  const phase = fc.record({
    callsPerSecond: fc.double({ min: 0, max: 500, noNaN: true }),
    durationMs: fc.integer({ min: 1, max: 5000 }),
  })
  fc.assert(
    fc.property(fc.array(phase, { minLength: 1, maxLength: 5 }), (phases) => {
      const due = [...evenArrivals(phases)]
      let beginMs = 0
      let at = 0
      for (const { callsPerSecond, durationMs } of phases) {
        const count = Math.round((callsPerSecond * durationMs) / 1000)
        const here = due.slice(at, at + count)
        if (here.length !== count || here.some((ms) => ms < beginMs || ms >= beginMs + durationMs)) return false
        at += count
        beginMs += durationMs
      }
      return at === due.length && due.every((ms, index) => ms >= (due[index - 1] ?? 0))
    }),
  )
  t.pass()
})

t.test('Poisson arrivals have the count of each interval, ascend, and are the same for the same seed', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(40), { maxLength: 20 }),
      fc.integer({ min: 1, max: 60_000 }),
      fc.nat(),
      (counts, intervalMs, seed) => {
        const due = poissonArrivals(counts, intervalMs, seededRandom(seed))
        const found = counts.map((_, index) => due.filter((ms) => Math.floor(ms / intervalMs) === index).length)
        const again = poissonArrivals(counts, intervalMs, seededRandom(seed))
        return (
          found.every((count, index) => count === counts[index]) &&
          due.every((ms, index) => ms >= (due[index - 1] ?? 0) && ms === again[index])
        )
      },
    ),
  )
  t.pass()
})

t.test('the gaps of Poisson arrivals are as unequal as exponential ones', async (t) => {
  const due = poissonArrivals([20_000], 1_000_000, seededRandom(7))
  const gaps = [...due].slice(1).map((ms, index) => ms - (due[index] ?? 0))
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length
  const longer = gaps.filter((gap) => gap > mean).length / gaps.length
  t.ok(Math.abs(longer - Math.exp(-1)) < 0.02, `${longer} of the gaps are longer than the mean, 1/e is expected`)
})

t.test('seeded numbers are uniform in [0, 1), and other seeds give others', async (t) => {
  const random = seededRandom(seedOf('a'))
  const values = Array.from({ length: 10_000 }, random)
  t.ok(values.every((value) => value >= 0 && value < 1))
  const tenths = Array.from({ length: 10 }, (_, tenth) => values.filter((value) => Math.floor(value * 10) === tenth).length)
  t.ok(
    tenths.every((count) => Math.abs(count - 1000) < 150),
    String(tenths),
  )
  t.not(seededRandom(seedOf('a'))(), seededRandom(seedOf('b'))())
})

const answerText = (status: number, headers: readonly string[], body: string): string =>
  [`HTTP/1.1 ${status} Text`, ...headers, `Content-Length: ${Buffer.byteLength(body)}`, '', body].join('\r\n')

t.test('answers are read the same from any pieces they come in, one after the other', async (t) => {
  const answers = [
    answerText(200, ['x-other: 1', 'X-Carpool-Invocation: abc'], 'hello\r\n\r\nworld'),
    answerText(503, ['Retry-After: 2', 'x-carpool-error: saturated'], '{}'),
    'HTTP/1.1 204 No Content\r\n\r\n',
    answerText(200, ['Connection: close'], ''),
    answerText(200, [], 'x'.repeat(2 * MAX_BODY_CHARACTERS)),
  ]
  const expected: Answer[] = [
    { status: 200, id: 'abc', closes: false, body: 'hello\r\n\r\nworld' },
    { status: 503, code: 'saturated', retryAfterSeconds: 2, closes: false, body: '{}' },
    { status: 204, closes: false, body: '' },
    { status: 200, closes: true, body: '' },
    { status: 200, closes: false, body: 'x'.repeat(MAX_BODY_CHARACTERS) },
  ]
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 }), (sizes) => {
      const reader = new ResponseReader()
      const found = answers.flatMap((answer) => {
        const bytes = Buffer.from(answer)
        const read: Array<Answer | undefined> = []
        for (let at = 0, piece = 0; at < bytes.length; piece++) {
          const size = sizes[piece % sizes.length] ?? 1
          read.push(reader.read(bytes.subarray(at, at + size)))
          at += size
        }
        return read.at(-1) === undefined || read.slice(0, -1).some((early) => early !== undefined) ? [] : read.slice(-1)
      })
      t.strictSame(found, expected)
    }),
  )
})

t.test('what is no answer, or more than one, is refused', async (t) => {
  const read = (text: string): unknown => new ResponseReader().read(Buffer.from(text))
  t.throws(() => read('SMTP 220 hello\r\n\r\n'), /not HTTP/)
  t.throws(() => read('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'), /its length/)
  t.throws(() => read('HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n'), /its length/)
  t.throws(() => read(`${answerText(200, [], 'text')}more`), /more than/)
})

const call = (given: Partial<Call>): Call => ({ path: 0, dueMs: 0, sentMs: 0, endedMs: 0, status: 0, ...given })

t.test('calls end good, refused, left or failed', async (t) => {
  t.equal(endOf(call({ status: 204 })), 'good')
  t.equal(endOf(call({ status: 503, code: 'saturated' })), 'refused')
  t.equal(endOf(call({ status: 429, code: 'too-many-requests' })), 'refused')
  t.equal(endOf(call({ status: 503 })), 'failed', 'a 503 of the function itself')
  t.equal(endOf(call({ status: 504, code: 'timeout' })), 'failed')
  t.equal(endOf(call({ failure: 'left' })), 'left')
  t.equal(endOf(call({ failure: 'ECONNRESET' })), 'failed')
  t.equal(endOf(call({ status: 200, failure: 'wrong answer' })), 'failed')
  t.equal(endLine([]), 'none')
  t.equal(
    endLine([call({ status: 503, code: 'draining' }), call({ status: 200 }), call({ status: 200 })]),
    '2 x 200, 1 x 503 draining',
  )
})

t.test('latency counts from when a call was due, and a rate only what was answered in time and well', async (t) => {
  t.equal(latencyMs(call({ dueMs: 10, sentMs: 50, endedMs: 60 })), 50)
  const calls = [0, 500, 999, 1000].map((endedMs) => call({ status: 200, endedMs }))
  t.equal(goodPerSecond([...calls, call({ status: 500, endedMs: 1 })], 0, 1000), 3)
  t.strictSame(distributionOf([]), { count: 0 })
  t.strictSame(distributionOf([3, 1, 2]), { count: 3, p50: 2, p99: 3, max: 3 })
})
