/** A function that is flooded with 10,000 calls beside one that is called ten times a second. */
import { milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atMost, type Verdict } from '../../lib/verdict.ts'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { CALC_FOLDER, calcPath, HELLO_FILE, SLEEPER_FILE } from '../functions.ts'
import { callsThat, distributionOf, endLine, latencyMs } from '../../lib/load/call-summary.ts'
import { evenArrivals } from '../../lib/load/arrivals.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import type { LoadOrder, LoadResult } from '../../lib/load/load-order.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { mostServing } from '../../lib/watch/fleet-sample.ts'

const FLOOD_CALLS = 10_000
const BURST_EVERY_MS = 3_000
const QUIET_PER_SECOND = 10
const RUN_MS = 15_000
const QUICK_RUN_MS = 6_000
const ALONE_FACTOR = 2
const ALONE_PLUS_MS = 10
/** Both generators begin together so long after they were told. */
const LEAD_MS = 100

const FLOODED = [
  { title: 'hello', path: '/hello/' },
  { title: 'calc level 4', path: calcPath('calc', 4) },
  { title: 'sleep 100 ms', path: '/sleeper/?ms=100' },
] as const
type Flooded = (typeof FLOODED)[number]

/**
 * `burst`: all at once, again and again. `kept up`: each that is answered makes room for the next, after `Retry-After` if it
 * was refused; the same over fewer connections, which is what load generators do.
 */
const SHAPES = ['burst', 'kept up', 'kept up, 500 connections'] as const
const FEW_CONNECTIONS = 500
type Shape = (typeof SHAPES)[number]

interface Run {
  readonly title: string
  readonly shape: Shape
  readonly aloneP99Ms: number
  readonly quietP50Ms: number
  readonly quietP99Ms: number
  readonly quietMaxMs: number
  readonly quietEnds: string
  readonly quietNotGood: number
  readonly floodEnds: string
  readonly floodFailed: number
  readonly floodCores: number
  readonly hosts: number
  /** Of the quiet generator: it has precedence, so this is small or the figures mean nothing. */
  readonly latestStartMs: number
}

export async function measureFlood({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const durationMs = isQuick ? QUICK_RUN_MS : RUN_MS
  const runs: Run[] = []
  for (const flooded of isQuick ? FLOODED.slice(0, 1) : FLOODED) {
    await using server = await startBenchServer()
    await server.carpool.deploy(HELLO_FILE, 'quiet')
    await server.carpool.deploy(HELLO_FILE, 'hello')
    await server.carpool.deploy(CALC_FOLDER, 'calc')
    await server.carpool.deploy(SLEEPER_FILE, 'sleeper')
    await server.untilSettled()
    progress(`flood: quiet alone, then beside ${flooded.title}`)
    const alone = await runQuiet(server, durationMs)
    const aloneP99Ms = distributionOf(alone.calls.map(latencyMs)).p99 ?? Number.NaN
    for (const shape of SHAPES) runs.push(await runBeside(server, flooded, shape, aloneP99Ms, durationMs))
  }
  return {
    blocks: [
      `${FLOOD_CALLS} calls at once (burst: every ${BURST_EVERY_MS / 1000} s) beside ${QUIET_PER_SECOND} calls/s, for ${durationMs / 1000} s\n${renderTable(COLUMNS, runs, style)}`,
    ],
    verdicts: runs.flatMap(check),
    results: runs,
  }
}

function quietOrder(origin: string, durationMs: number): LoadOrder {
  const dueMs = evenArrivals([{ callsPerSecond: QUIET_PER_SECOND, durationMs }])
  return { origin, paths: ['/quiet/'], load: { kind: 'open', dueMs }, openConnections: 1, takesPrecedence: true }
}

function floodOrder(origin: string, path: string, shape: Shape, durationMs: number): LoadOrder {
  const connections = shape === 'kept up, 500 connections' ? FEW_CONNECTIONS : FLOOD_CALLS
  const common = { origin, paths: [path], openConnections: connections, maxConnections: connections }
  if (shape !== 'burst') return { ...common, load: { kind: 'closed', clients: connections, durationMs, heedsRetryAfter: true } }
  const bursts = Math.floor(durationMs / BURST_EVERY_MS)
  const dueMs = Float64Array.from({ length: bursts * FLOOD_CALLS }, (_, call) => Math.floor(call / FLOOD_CALLS) * BURST_EVERY_MS)
  return { ...common, load: { kind: 'open', dueMs } }
}

async function runQuiet({ carpool }: BenchServer, durationMs: number): Promise<LoadResult> {
  const generator = await startGenerator(quietOrder(carpool.url, durationMs))
  generator.begin()
  return generator.result
}

async function runBeside(
  server: BenchServer,
  { title, path }: Flooded,
  shape: Shape,
  aloneP99Ms: number,
  durationMs: number,
): Promise<Run> {
  progress(`flood: ${title}, ${shape}`)
  const origin = server.carpool.url
  const quiet = await startGenerator(quietOrder(origin, durationMs))
  const flood = await startGenerator(floodOrder(origin, path, shape, durationMs))
  const watch = await server.watch()
  const beginMs = epochMs() + LEAD_MS
  quiet.begin(beginMs)
  flood.begin(beginMs)
  const { calls, latestStartMs } = await quiet.result
  const flooded = await flood.result
  const samples = await watch.stop()
  const { p50 = Number.NaN, p99 = Number.NaN, max = Number.NaN } = distributionOf(calls.map(latencyMs))
  return {
    title,
    shape,
    aloneP99Ms,
    quietP50Ms: p50,
    quietP99Ms: p99,
    quietMaxMs: max,
    quietEnds: endLine(calls),
    quietNotGood: calls.length - callsThat('good', calls).length,
    floodEnds: endLine(flooded.calls),
    floodFailed: callsThat('failed', flooded.calls).length,
    floodCores: flooded.generatorCores,
    hosts: mostServing(samples),
    latestStartMs,
  }
}

function check({ title, shape, aloneP99Ms, quietP99Ms, quietNotGood, floodFailed }: Run): Verdict[] {
  const claim = (text: string): string => `flood of ${title}, ${shape}: ${text}`
  const limitMs = ALONE_FACTOR * aloneP99Ms + ALONE_PLUS_MS
  return [
    atMost('demand', claim(`the quiet one's p99`), quietP99Ms, limitMs, milliseconds),
    atMost('demand', claim('quiet calls without a good answer'), quietNotGood, 0, String),
    atMost('demand', claim('calls of the flood that failed in another way than by 429 or 503'), floodFailed, 0, String),
  ]
}

const COLUMNS: ReadonlyArray<Column<Run>> = [
  { title: 'flooded', align: 'left', text: ({ title }) => title },
  { title: 'shape', align: 'left', text: ({ shape }) => shape },
  { title: 'quiet p99 alone', text: ({ aloneP99Ms }) => milliseconds(aloneP99Ms) },
  { title: 'p50 beside', text: ({ quietP50Ms }) => milliseconds(quietP50Ms) },
  { title: 'p99 beside', text: ({ quietP99Ms }) => milliseconds(quietP99Ms) },
  { title: 'slowest', text: ({ quietMaxMs }) => milliseconds(quietMaxMs) },
  { title: 'latest start', text: ({ latestStartMs }) => milliseconds(latestStartMs) },
  { title: 'quiet answers', align: 'left', text: ({ quietEnds }) => quietEnds },
  { title: 'cores of the flooder', text: ({ floodCores }) => floodCores.toFixed(2) },
  { title: 'hosts', text: ({ hosts }) => String(hosts) },
  { title: 'answers to the flood', align: 'left', text: ({ floodEnds }) => floodEnds },
]
