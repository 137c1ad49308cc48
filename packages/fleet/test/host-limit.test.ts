import fc from 'fast-check'
import t from 'tap'
import { initialHostLimit, nextHostLimit, type HostLimit, type HostLimitSample } from '../src/scaling/host-limit.ts'

const policy = { initial: 64, min: 4, max: 1000, targetMs: 5 }

/** The limit after each of the windows of 100 ms, given what a sample is at a limit. */
function after(
  windows: number,
  sampleAt: (limit: number) => Omit<HostLimitSample, 'atMs'>,
  from = initialHostLimit(policy),
): HostLimit[] {
  const states: HostLimit[] = []
  let state = from
  for (let n = 1; n <= windows; n++) {
    state = nextHostLimit(state, { ...sampleAt(state.limit), atMs: n * 100 }, policy)
    states.push(state)
  }
  return states
}

t.test('delay above the target lowers it, down to the least', async (t) => {
  const states = after(60, (limit) => ({ p90Us: 50_000, count: 100, running: limit }))
  t.ok(states[0]!.limit < 64)
  t.equal(states.at(-1)!.limit, 4)
})

t.test('delay below the target raises it while it is used, up to the most', async (t) => {
  t.equal(after(60, (limit) => ({ p90Us: 100, count: 100, running: limit })).at(-1)!.limit, 1000)
  t.equal(after(60, () => ({ p90Us: 100, count: 100, running: 20 })).at(-1)!.limit, 64)
})

t.test('one that has fallen is back where it was within 2 s', async (t) => {
  const fallen = after(60, (limit) => ({ p90Us: 50_000, count: 100, running: limit })).at(-1)!
  t.ok(after(20, (limit) => ({ p90Us: 100, count: 100, running: limit }), fallen).at(-1)!.limit >= 64)
})

t.test('few entries wait for more, but not for longer than a second', async (t) => {
  const few = { p90Us: 200_000, running: 64 }
  const fives = after(10, () => ({ ...few, count: 1 })).map(({ limit }) => limit)
  t.strictSame(fives.slice(0, 4), [64, 64, 64, 64])
  t.ok(fives[4]! < 45, 'the steps that were left out are made up for')
  t.strictSame(
    fives.slice(4, 9).map((limit) => limit === fives[4]),
    [true, true, true, true, true],
  )
  const once = after(12, (limit) => ({ ...few, count: limit === 64 ? 0.4 : 0 })).map(({ limit }) => limit)
  t.equal(once[8], 64)
  t.ok(once[11]! < 64)
})

t.test('entries that run on tell nothing', async (t) => {
  t.equal(after(50, () => ({ p90Us: 0, count: 0, running: 64 })).at(-1)!.limit, 64)
})

t.test('an idle host goes back to the initial limit, slowly', async (t) => {
  const idle = { p90Us: 0, count: 0, running: 0 }
  for (const exact of [4, 1000]) {
    const from = { ...initialHostLimit(policy), limit: exact, exact }
    const limits = after(400, () => idle, from).map(({ limit }) => limit)
    t.ok(Math.abs(limits[0]! - exact) <= 20)
    t.ok(Math.abs(limits.at(-1)! - 64) <= 1)
  }
})

t.test('it stays a whole number within its range, whatever comes', async () => {
  const samples = fc.array(
    fc.record({
      p90Us: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 6e7, noNaN: true })),
      count: fc.nat(1000),
      running: fc.nat(2000),
      gapMs: fc.double({ min: 0, max: 5000, noNaN: true }),
    }),
    { maxLength: 200, size: 'max' },
  )
  fc.assert(
    fc.property(samples, fc.integer({ min: 1, max: 50 }), fc.integer({ min: 50, max: 2000 }), (samples, min, max) => {
      const policy = { initial: 50, min, max, targetMs: 5 }
      let state = initialHostLimit(policy)
      let atMs = 0
      for (const { gapMs, ...sample } of samples) {
        state = nextHostLimit(state, { ...sample, atMs: (atMs += gapMs) }, policy)
        if (!Number.isInteger(state.limit) || state.limit < min || state.limit > max) return false
      }
      return true
    }),
  )
})
