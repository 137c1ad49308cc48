import t from 'tap'
import { CPU_PARTS } from '@carpool/telemetry'
import { hostCpuBetween, functionsCpu, isolatesCpu, parseHostCpu, type HostCpu } from '../src/lib/host-cpu.ts'
import { readThreadTimes } from '../src/lib/thread-table.ts'
import { countOutside, type AccuracyResult } from '../src/metering/accuracy.ts'
import { checkAccuracy, checkConservation, checkNeighbour, checkThroughput } from '../src/metering/checks.ts'
import { processAccounted, processAccountedBySystem, type ConservationResult } from '../src/metering/conservation.ts'
import { besideRatio, mean, type NeighbourRun, type Situation } from '../src/metering/neighbour.ts'
import { onRatio, type ThroughputRun, type Version } from '../src/metering/throughput.ts'
import { workUrl } from '../src/metering/work.ts'

const metricsOf = (values: readonly number[]): string =>
  ['# TYPE carpool_host_cpu_seconds gauge']
    .concat(CPU_PARTS.map((part, index) => `carpool_host_cpu_seconds{part="${part}"} ${values[index]}`))
    .join('\n')

const cpuOf = (given: Partial<HostCpu>): HostCpu => ({ ...parseHostCpu(metricsOf([0, 0, 0, 0, 0, 0, 0, 0])), ...given })

t.test('the parts of CPU time are read from the metrics, and a missing one is an error', async (t) => {
  const cpu = parseHostCpu(metricsOf([1, 0.5, 0.25, 2, 0.125, 4, -3, 1e-6]))
  t.match(cpu, { 'invocations': 1, 'memory-watch': 0.125, 'threads': -3, 'unattributed': 1e-6 })
  t.throws(() => parseHostCpu('carpool_host_cpu_seconds{part="loop"} 1'), /no carpool_host_cpu_seconds of invocations/)
})

t.test('functions and isolates are sums of parts', async (t) => {
  const before = cpuOf({ invocations: 1, loop: 10 })
  const after = cpuOf({
    'invocations': 3,
    'starts': 1,
    'background': 0.5,
    'unattributed': -0.25,
    'blanks': 8,
    'memory-watch': 4,
    'loop': 30,
  })
  const between = hostCpuBetween(before, after)
  t.equal(functionsCpu(between), 3.25)
  t.equal(isolatesCpu(between), 15.25)
  t.equal(between.loop, 20)
})

t.test('a process has a main thread, and its times go up', { skip: process.platform !== 'linux' }, async (t) => {
  const before = readThreadTimes(process.pid)
  const start = process.threadCpuUsage()
  while (process.threadCpuUsage(start).user < 50_000);
  const after = readThreadTimes(process.pid)
  t.ok((after?.main ?? 0) - (before?.main ?? 0) >= 0.04)
  t.equal(readThreadTimes(2 ** 22 + 1), undefined, 'no such process')
})

t.test('what a call is to do stands in its address', async (t) => {
  t.equal(
    workUrl('http://x/work/', { iterations: 40, parts: 4, waitMs: [5, 25] }),
    'http://x/work/?iterations=40&parts=4&wait=5-25',
  )
})

t.test('a record may be off by 1 ms, or by a tenth if that is more', async (t) => {
  t.equal(countOutside([0, 1000, 2000, 2001], 1000), 1)
  t.equal(countOutside([89_999, 90_000, 110_000, 110_001], 100_000), 2)
})

const failing = (verdicts: ReadonlyArray<{ readonly isMet: boolean }>): number[] =>
  verdicts.flatMap(({ isMet }, index) => (isMet ? [] : [index]))

const ACCURATE: AccuracyResult = {
  cpuMs: 1,
  calls: 2,
  referenceUs: [1000],
  recordedUs: [1000, 1000],
  outside: 0,
  recordsSeconds: 0.985,
  backgroundSeconds: 0,
  isolatesSeconds: 1,
  threadsSeconds: 1.02,
}

t.test('accuracy is checked at its limits', async (t) => {
  const check = (changed: Partial<AccuracyResult>, sleepUs = 1000): number[] =>
    failing(checkAccuracy([{ ...ACCURATE, ...changed }], [sleepUs]))
  t.strictSame(check({}), [])
  t.strictSame(check({ recordsSeconds: 0.97 }), [0])
  t.strictSame(check({ recordsSeconds: 1.03 }), [0], 'too much is as bad')
  t.strictSame(check({ threadsSeconds: 0.9 }), [1])
  t.strictSame(check({ outside: 1 }), [2])
  t.strictSame(check({}, 1001), [3])
  t.equal(checkAccuracy([{ ...ACCURATE, threadsSeconds: undefined }], [1]).length, 3, 'what is not known is not checked')
})

const CONSERVED: ConservationResult = {
  load: { calls: 10, failures: 0, perStream: [] },
  processSeconds: 10,
  ledgerSeconds: 5,
  cpu: cpuOf({ 'invocations': 4, 'starts': 0.5, 'background': 0.5, 'blanks': 1, 'memory-watch': 0.5, 'loop': 3, 'threads': 0.5 }),
  threads: { main: 3, v8Helpers: 0.5, others: 6.5 },
}

t.test('what is counted twice in isolates is not hidden by what is left for threads', async (t) => {
  t.strictSame(failing(checkConservation(CONSERVED)), [])
  const twice = { ...CONSERVED, ledgerSeconds: 10, cpu: { ...CONSERVED.cpu, invocations: 9, threads: -4.5 } }
  t.equal(processAccounted(twice), 1)
  t.equal(processAccountedBySystem(twice), 1.5)
  t.strictSame(failing(checkConservation(twice)), [2])
})

t.test('what is in no record is seen', async (t) => {
  const lost = { ...CONSERVED, ledgerSeconds: 4, cpu: { ...CONSERVED.cpu, invocations: 3, unattributed: 1 } }
  t.strictSame(failing(checkConservation(lost)), [1, 3, 4])
  t.strictSame(failing(checkConservation({ ...CONSERVED, load: { ...CONSERVED.load, failures: 1 } })), [0])
})

t.test('a neighbour is compared within the rounds, whoever was first', async (t) => {
  const run = (round: number, situation: Situation, ...cpuUs: number[]): NeighbourRun => ({
    round,
    situation,
    cpuUs,
    burned: 0,
    latestStartMs: 0,
  })
  const runs = [
    run(0, 'alone', 1000, 1000, 1000),
    run(0, 'beside', 1040, 1040, 1400),
    run(1, 'beside', 2080, 2080, 2800),
    run(1, 'alone', 2000, 2000, 2000),
  ]
  const [middle] = runs.map(({ cpuUs }) => cpuUs)
  t.equal(mean(middle ?? []), 1000)
  t.equal(
    besideRatio(runs, ([, second = 0]) => second),
    1.04,
  )
  t.strictSame(failing(checkNeighbour(runs)), [1], 'the medians are near, the means are not')
})

t.test('throughput is compared within the pairs', async (t) => {
  const run = (round: number, version: Version, requestsPerSecond: number) =>
    ({ round, version, requestsPerSecond }) as ThroughputRun
  const runs = [run(0, 'off', 1000), run(0, 'on', 960), run(1, 'on', 96), run(1, 'off', 100)]
  t.equal(onRatio(runs), 0.96)
  t.strictSame(failing(checkThroughput(runs)), [])
  t.strictSame(failing(checkThroughput([run(0, 'off', 100), run(0, 'on', 94)])), [0])
})
