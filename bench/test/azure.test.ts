import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { cpuMsOf, cpuShareOf, factorFor, MOST_CPU_MS } from '../src/azure/cpu-split.ts'
import { durationAt } from '../src/azure/duration-curve.ts'
import { planReplay } from '../src/azure/replay-plan.ts'
import { parseSample, PERCENTS, readSample } from '../src/azure/sample.ts'

const SLICE = join(import.meta.dirname, '../data/azure-functions-2019')
const HEAD = 'HashOwner,HashApp,HashFunction'
const DURATIONS = `${HEAD},Average,Count,Minimum,Maximum,${PERCENTS.map((percent) => `percentile_Average_${percent}`).join(',')}`

t.test('the slice in the repository is read: 20 functions with an hour of calls', async (t) => {
  const sample = readSample(SLICE)
  t.equal(sample.length, 20)
  t.equal(new Set(sample.map(({ name }) => name)).size, 20)
  t.ok(sample.every(({ callsPerMinute, durationsMs }) => callsPerMinute.length === 60 && durationsMs.length === PERCENTS.length))
})

t.test('tables are joined by their ids, in any order', async (t) => {
  const invocations = `${HEAD},Trigger,480,481\no,a,f,http,3,4\no,a,g,timer,0,1\n`
  const durations = `${DURATIONS}\no,a,g,5,1,5,5,5,5,5,5,5,5,5\no,a,f,2,7,1,9,1,1,2,2,3,8,9\n`
  t.strictSame(parseSample(invocations, durations), [
    { name: 'f1', trigger: 'http', callsPerMinute: [3, 4], durationsMs: [1, 1, 2, 2, 3, 8, 9] },
    { name: 'f2', trigger: 'timer', callsPerMinute: [0, 1], durationsMs: [5, 5, 5, 5, 5, 5, 5] },
  ])
  t.throws(() => parseSample(invocations, `${DURATIONS}\n`), /no durations/)
  t.throws(() => parseSample(invocations.replace('3,4', '3,x'), durations), /481 of the sample is "x"/)
  t.throws(() => readSample(join(SLICE, 'nowhere')), /no invocations\.csv/)
})

const CURVE = fc
  .array(fc.integer({ min: 0, max: 600_000 }), { minLength: PERCENTS.length, maxLength: PERCENTS.length })
  .map((values) => values.toSorted((a, b) => a - b))
const RANK = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

t.test('a duration lies between the percentiles around its rank, and rises with it', async (t) => {
  fc.assert(
    fc.property(CURVE, RANK, RANK, (curve, a, b) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)]
      const found = durationAt(curve, low)
      const upper = PERCENTS.findIndex((percent) => percent > low * 100)
      const within = [Math.max(0.5, curve[upper - 1] ?? 0), Math.max(0.5, curve[upper] ?? 0)] as const
      const tolerance = 1 + 1e-9
      return found * tolerance >= within[0] && found <= within[1] * tolerance && found <= durationAt(curve, high) * tolerance
    }),
  )
  const curve = [1, 2, 10, 20, 40, 100, 1000]
  t.strictSame(
    [0, 0.01, 0.25, 0.5, 0.75, 0.99].map((rank) => durationAt(curve, rank)),
    curve.slice(0, -1),
  )
})

t.test('a share of CPU is from 1 to 100 %, by name and seed', async (t) => {
  const shares = Array.from({ length: 1000 }, (_, index) => cpuShareOf(`f${index}`, 1))
  t.ok(shares.every((share) => share > 0.01 && share <= 1))
  const small = shares.filter((share) => share < 0.1).length
  t.ok(Math.abs(small - 500) < 100, `${small} of 1000 are below the geometric mean`)
  t.equal(cpuShareOf('f1', 1), cpuShareOf('f1', 1))
  t.not(cpuShareOf('f1', 1), cpuShareOf('f1', 2))
})

t.test('the common factor gives the CPU that is wanted, if it can be had', async (t) => {
  const work = fc.record({
    durationMs: fc.double({ min: 1, max: 1e5, noNaN: true }),
    share: fc.double({ min: 0.01, max: 1, noNaN: true }),
  })
  fc.assert(
    fc.property(fc.array(work, { minLength: 1, maxLength: 50 }), RANK, (calls, part) => {
      const most = calls.reduce((sum, { durationMs }) => sum + Math.min(MOST_CPU_MS, durationMs), 0)
      const factor = factorFor(calls, most * part)
      const got = calls.reduce((sum, call) => sum + cpuMsOf(call, factor), 0)
      return Math.abs(got - most * part) < 1e-6 * most && calls.every((call) => cpuMsOf(call, factor) <= call.durationMs)
    }),
  )
  t.pass()
})

t.test('a plan has every call of its minutes, in order, with the CPU that is wanted; the same for the same seed', async (t) => {
  const sample = readSample(SLICE)
  const options = { minutes: 10, scale: 10, cores: 0.2, seed: 1 }
  const { calls, functionNames, durationMs, cores } = planReplay(sample, options)
  const expected = sample.map(({ callsPerMinute }) => callsPerMinute.slice(0, 10).reduce((sum, count) => sum + count, 0))
  t.equal(
    calls.length,
    expected.reduce((sum, count) => sum + count, 0),
  )
  t.equal(functionNames.length, expected.filter((count) => count > 0).length)
  t.equal(durationMs, 60_000)
  t.ok(Math.abs(cores - 0.2) < 0.001)
  t.ok(calls.every(({ dueMs, cpuMs, waitMs }) => dueMs < durationMs && cpuMs > 0 && waitMs >= 0))
  t.ok(calls.every(({ dueMs }, index) => dueMs >= (calls[index - 1]?.dueMs ?? 0)))
  t.strictSame(planReplay(sample, options).calls, calls)
  t.notSame(planReplay(sample, { ...options, seed: 2 }).calls[0], calls[0])
  t.throws(() => planReplay(sample, { ...options, minutes: 61 }), /60 minutes, not 61/)
})
