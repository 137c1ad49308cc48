/** Twice the load that fits, and no host to add: what is answered stays near the peak, the rest is refused at once. */
import { milliseconds, percent } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost, type Verdict } from '../../lib/verdict.ts'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { calcBundle, calcPath } from '../functions.ts'
import { evenArrivals } from '../../lib/load/arrivals.ts'
import { callsThat, distributionOf, endLine, latencyMs, type Distribution } from '../../lib/load/call-summary.ts'
import { runLoad } from '../../lib/load/generator.ts'
import { closedLoopRates } from '../peak.ts'
import type { Call } from '../../lib/load/load-order.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { everServing } from '../../lib/watch/fleet-sample.ts'

const LEVELS = [3, 5, 6] as const
type Level = (typeof LEVELS)[number]
const LOADS: ReadonlyArray<readonly Level[]> = [[3], [5], [6], LEVELS]
const QUICK_LOADS: ReadonlyArray<readonly Level[]> = [[5], LEVELS]

const OVERLOAD = 2
const GOOD_SHARE = 0.9
const OVERLOAD_MS = 30_000
const QUICK_MS = 8_000
const PEAK_MS = 3_000
/** For each level: enough to keep a host busy, and few enough that nobody waits for long. */
const PEAK_CLIENTS = 8
const LATER_MS = 2_000
/** Wall limit of the functions: the deadline of a call. */
const DEADLINE_MS = 1_000
/** What "at once" means here. */
const REFUSAL_AIM_MS = 250

/** Good answers per second of each level. */
type Rates = ReadonlyMap<Level, number>

interface Overload {
  readonly levels: readonly Level[]
  readonly peakPerSecond: Readonly<Record<string, number>>
  readonly offeredPerSecond: Readonly<Record<string, number>>
  readonly goodPerSecond: Readonly<Record<string, number>>
  /** Work done against work done at the peak: an answer of a level counts as what it takes, by the rate of that level alone. */
  readonly goodShare: number
  readonly goodMs: Distribution
  /** Of calls that were due after the first seconds, in which overload is found out. */
  readonly laterGoodMs: Distribution
  readonly afterDeadline: number
  readonly refusedMs: Distribution
  readonly laterRefusedMs: Distribution
  readonly refusedWithoutRetryAfter: number
  readonly failed: number
  readonly ends: string
  readonly hosts: number
  readonly latestStartMs: number
  readonly generatorCores: number
}

export async function measureOverload({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  await using server = await startBenchServer({ flags: ['--max-hosts', '1'] })
  for (const level of LEVELS) {
    await server.deployBundle(functionName(level), calcBundle(functionName(level)), { wallMs: DEADLINE_MS })
  }
  await server.untilSettled()
  const durationMs = isQuick ? QUICK_MS : OVERLOAD_MS
  const alone = new Map<Level, number>()
  for (const level of LEVELS) for (const [, rate] of await peakOf(server, [level])) alone.set(level, rate)
  const overloads: Overload[] = []
  for (const levels of isQuick ? QUICK_LOADS : LOADS) overloads.push(await overload(server, levels, alone, durationMs))
  return {
    blocks: [
      `${OVERLOAD} times the peak of one host for ${durationMs / 1000} s, --max-hosts 1, wall limit ${DEADLINE_MS} ms; later: due after ${LATER_MS / 1000} s\n${renderTable(COLUMNS, overloads, style)}`,
    ],
    verdicts: overloads.flatMap(check),
    results: { alone: Object.fromEntries(alone), overloads },
  }
}

/**
 * In a closed loop. Several levels have a peak of their own: each function has a thread, and a host may use more than one core.
 */
async function peakOf(server: BenchServer, levels: readonly Level[]): Promise<Rates> {
  const paths = levels.map((level) => calcPath(functionName(level), level))
  const rates = await closedLoopRates(server, { paths, clients: PEAK_CLIENTS * levels.length, durationMs: PEAK_MS })
  return new Map(levels.map((level, index) => [level, rates[index] ?? Number.NaN]))
}

/** What rates come to if all levels count by what they take: 1 is a level alone at its peak. */
function workOf(rates: Rates, alone: Rates): number {
  return [...rates].reduce((sum, [level, rate]) => sum + rate / (alone.get(level) ?? Number.NaN), 0)
}

async function overload(server: BenchServer, levels: readonly Level[], alone: Rates, durationMs: number): Promise<Overload> {
  const peak = await peakOf(server, levels)
  progress(`overload: level ${levels.join(', ')}, peak ${ratesText(Object.fromEntries(peak))}/s`)
  const rateOf = (level: Level): number => OVERLOAD * (peak.get(level) ?? Number.NaN)
  const due = levels
    .flatMap((level) => Array.from(evenArrivals([{ callsPerSecond: rateOf(level), durationMs }]), (dueMs) => ({ level, dueMs })))
    .toSorted((a, b) => a.dueMs - b.dueMs)
  const watch = await server.watch()
  const { calls, beganMs, latestStartMs, generatorCores } = await runLoad({
    origin: server.carpool.url,
    paths: due.map(({ level }) => calcPath(functionName(level), level)),
    load: { kind: 'open', dueMs: Float64Array.from(due, ({ dueMs }) => dueMs) },
  })
  const samples = await watch.stop()
  // What was still under way when the load ended is no more overload.
  const good = callsThat('good', calls).filter(({ endedMs }) => endedMs < beganMs + durationMs)
  const refused = callsThat('refused', calls)
  const goodRates = new Map(
    levels.map((level) => [level, (good.filter(({ path }) => due[path]?.level === level).length * 1000) / durationMs]),
  )
  const isLater = ({ dueMs }: Call): boolean => dueMs >= beganMs + LATER_MS
  return {
    levels,
    peakPerSecond: Object.fromEntries(peak),
    offeredPerSecond: Object.fromEntries(levels.map((level) => [level, rateOf(level)])),
    goodPerSecond: Object.fromEntries(goodRates),
    goodShare: workOf(goodRates, alone) / workOf(peak, alone),
    goodMs: distributionOf(callsThat('good', calls).map(latencyMs)),
    laterGoodMs: distributionOf(callsThat('good', calls).filter(isLater).map(latencyMs)),
    afterDeadline: callsThat('good', calls).filter((call) => latencyMs(call) > DEADLINE_MS).length,
    refusedMs: distributionOf(refused.map(latencyMs)),
    laterRefusedMs: distributionOf(refused.filter(isLater).map(latencyMs)),
    refusedWithoutRetryAfter: refused.filter(({ retryAfterSeconds = 0 }) => !(retryAfterSeconds >= 1)).length,
    failed: callsThat('failed', calls).length,
    ends: endLine(calls),
    hosts: everServing(samples).length,
    latestStartMs,
    generatorCores,
  }
}

function check({ levels, goodShare, afterDeadline, refusedMs, refusedWithoutRetryAfter, failed, hosts }: Overload): Verdict[] {
  const claim = (text: string): string => `overload, level ${levels.join('+')}: ${text}`
  return [
    atLeast('demand', claim('good answers against the peak'), goodShare, GOOD_SHARE, percent),
    atMost('demand', claim('calls that failed in another way than by 503'), failed, 0, String),
    atMost('demand', claim('good answers after their deadline'), afterDeadline, 0, String),
    atMost('demand', claim('refusals without Retry-After'), refusedWithoutRetryAfter, 0, String),
    atMost('aim', claim('p99 until a refusal'), refusedMs.p99 ?? 0, REFUSAL_AIM_MS, milliseconds),
    atMost('demand', claim('hosts'), hosts, 1, String),
  ]
}

function functionName(level: Level): string {
  return `calc-${level}`
}

function ratesText(rates: Readonly<Record<string, number>>): string {
  return Object.values(rates)
    .map((rate) => rate.toFixed(1))
    .join(' + ')
}

function msText(value: number | undefined): string {
  return value === undefined ? '-' : milliseconds(value)
}

const COLUMNS: ReadonlyArray<Column<Overload>> = [
  { title: 'level', align: 'left', text: ({ levels }) => levels.join('+') },
  { title: 'peak/s', text: ({ peakPerSecond }) => ratesText(peakPerSecond) },
  { title: 'offered/s', text: ({ offeredPerSecond }) => ratesText(offeredPerSecond) },
  { title: 'good/s', text: ({ goodPerSecond }) => ratesText(goodPerSecond) },
  { title: 'of the peak', text: ({ goodShare }) => percent(goodShare) },
  { title: 'good p50', text: ({ goodMs }) => msText(goodMs.p50) },
  { title: 'good p99', text: ({ goodMs }) => msText(goodMs.p99) },
  { title: 'good max', text: ({ goodMs }) => msText(goodMs.max) },
  { title: 'later p99', text: ({ laterGoodMs }) => msText(laterGoodMs.p99) },
  { title: 'refused p50', text: ({ refusedMs }) => msText(refusedMs.p50) },
  { title: 'refused p99', text: ({ refusedMs }) => msText(refusedMs.p99) },
  { title: 'later p99', text: ({ laterRefusedMs }) => msText(laterRefusedMs.p99) },
  { title: 'hosts', text: ({ hosts }) => String(hosts) },
  { title: 'latest start', text: ({ latestStartMs }) => milliseconds(latestStartMs) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
