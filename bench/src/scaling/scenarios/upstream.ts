/** An upstream that slows down while the CPU idles: many calls wait, and none of them is refused nor asks for a host. */
import { setTimeout as delay } from 'node:timers/promises'
import { milliseconds } from '../../lib/quantities.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atMost } from '../../lib/verdict.ts'
import { startBenchServer } from '../../lib/bench-server.ts'
import { CALLER_FILE } from '../functions.ts'
import { evenArrivals } from '../../lib/load/arrivals.ts'
import { callsThat, distributionOf, endLine, latencyMs } from '../../lib/load/call-summary.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import type { Call } from '../../lib/load/load-order.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { startUpstream } from '../../lib/upstream/upstream.ts'
import { cpuCores, everServing, type FleetSample } from '../../lib/watch/fleet-sample.ts'

const CALLS_PER_SECOND = 300
const QUICK_DELAY_MS = 10
const SLOW_DELAY_MS = 2_000
const FAST_MS = 5_000
const SLOW_MS = 20_000
const SHORT_SLOW_MS = 5_000

interface Stretch {
  readonly title: string
  readonly ends: string
  readonly p50Ms: number
  readonly p99Ms: number
  readonly mostInFlight: number
  readonly hostCores: number
}

export async function measureUpstream({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const slowMs = isQuick ? SHORT_SLOW_MS : SLOW_MS
  await using upstream = await startUpstream(QUICK_DELAY_MS)
  await using server = await startBenchServer({ flags: ['--allow-egress', '127.0.0.0/8'] })
  await server.carpool.deploy(CALLER_FILE, 'caller')
  await server.untilSettled()
  const generator = await startGenerator({
    origin: server.carpool.url,
    paths: [`/caller/?upstream=${encodeURIComponent(upstream.url)}`],
    load: { kind: 'open', dueMs: evenArrivals([{ callsPerSecond: CALLS_PER_SECOND, durationMs: FAST_MS + slowMs }]) },
  })
  const watch = await server.watch()
  generator.begin()
  await delay(FAST_MS)
  upstream.setDelay(SLOW_DELAY_MS)
  const { calls, beganMs, latestStartMs } = await generator.result
  const samples = await watch.stop()
  const switchMs = beganMs + FAST_MS
  const stretches = [
    stretchOf(`upstream answers in ${QUICK_DELAY_MS} ms`, calls, samples, beganMs, switchMs),
    stretchOf(`upstream answers in ${SLOW_DELAY_MS} ms`, calls, samples, switchMs, switchMs + slowMs),
  ]
  return {
    blocks: [
      `${CALLS_PER_SECOND} calls/s of a function that fetches; latest start ${milliseconds(latestStartMs)}\n${renderTable(COLUMNS, stretches, style)}`,
    ],
    verdicts: [
      atMost('demand', 'upstream: refused calls', callsThat('refused', calls).length, 0, String),
      atMost('demand', 'upstream: failed calls', callsThat('failed', calls).length, 0, String),
      atMost('demand', 'upstream: hosts that took calls', everServing(samples).length, 1, String),
    ],
    results: { stretches, latestStartMs },
  }
}

function stretchOf(
  title: string,
  calls: readonly Call[],
  samples: readonly FleetSample[],
  fromMs: number,
  toMs: number,
): Stretch {
  const within = calls.filter(({ dueMs }) => dueMs >= fromMs && dueMs < toMs)
  const seen = samples.filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
  const { p50 = Number.NaN, p99 = Number.NaN } = distributionOf(within.map(latencyMs))
  const cores = cpuCores(seen).map(({ value }) => value)
  return {
    title,
    ends: endLine(within),
    p50Ms: p50,
    p99Ms: p99,
    mostInFlight: Math.max(...seen.map(({ inFlight }) => inFlight)),
    hostCores: cores.reduce((sum, value) => sum + value, 0) / cores.length,
  }
}

const COLUMNS: ReadonlyArray<Column<Stretch>> = [
  { title: 'stretch', align: 'left', text: ({ title }) => title },
  { title: 'p50', text: ({ p50Ms }) => milliseconds(p50Ms) },
  { title: 'p99', text: ({ p99Ms }) => milliseconds(p99Ms) },
  { title: 'most in flight', text: ({ mostInFlight }) => String(mostInFlight) },
  { title: 'cores of the hosts', text: ({ hostCores }) => hostCores.toFixed(2) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
