/** A square wave of load adds hosts once, and a burst after a minute of idleness takes none away. */
import { renderTable, type Column } from '../../lib/table.ts'
import { atMost } from '../../lib/verdict.ts'
import { startBenchServer } from '../../lib/bench-server.ts'
import { decisionBlock } from '../decision-line.ts'
import { CALC_FOLDER, calcPath } from '../functions.ts'
import { evenArrivals, type Phase } from '../../lib/load/arrivals.ts'
import { endLine } from '../../lib/load/call-summary.ts'
import { runLoad } from '../../lib/load/generator.ts'
import { oneHostPeak } from '../peak.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { hostChanges, mostServing, type FleetSample } from '../../lib/watch/fleet-sample.ts'

const LEVEL = 5
const PERIODS = 4
const HALF_MS = 30_000
const HIGH_OF_PEAK = 1.5
const LOW_PER_SECOND = 1
const IDLE_MS = 60_000
const BURST_MS = 10_000
const SAMPLE_INTERVAL_MS = 100
/** A host that is told to leave stops to take calls within this. */
const AFTER_BURST_MS = 2_000

interface Stretch {
  readonly title: string
  readonly changes: number
  readonly shrinks: number
  readonly mostServing: number
  readonly ends: string
}

export async function measureWave({ style }: ScenarioOptions): Promise<Measured> {
  const highPerSecond = HIGH_OF_PEAK * (await oneHostPeak(LEVEL))
  await using server = await startBenchServer()
  await server.carpool.deploy(CALC_FOLDER, 'calc')
  await server.untilSettled()
  const period: readonly Phase[] = [
    { callsPerSecond: highPerSecond, durationMs: HALF_MS },
    { callsPerSecond: LOW_PER_SECOND, durationMs: HALF_MS },
  ]
  const wave = Array.from({ length: PERIODS }, () => period).flat()
  const idle: Phase = { callsPerSecond: 0, durationMs: IDLE_MS }
  const burst: Phase = { callsPerSecond: highPerSecond, durationMs: BURST_MS }
  const after: Phase = { callsPerSecond: LOW_PER_SECOND, durationMs: AFTER_BURST_MS }
  const watch = await server.watch(SAMPLE_INTERVAL_MS)
  const { calls, beganMs } = await runLoad({
    origin: server.carpool.url,
    paths: [calcPath('calc', LEVEL)],
    load: { kind: 'open', dueMs: evenArrivals([...wave, idle, burst, after]) },
  })
  const samples = await watch.stop()
  const decisions = (await server.status()).decisions.toReversed()
  const stretch = (title: string, fromMs: number, durationMs: number): Stretch => {
    const isIn = (ms: number): boolean => ms >= beganMs + fromMs && ms < beganMs + fromMs + durationMs
    const within = samples.filter(({ atMs }) => isIn(atMs))
    const ends = endLine(calls.filter(({ dueMs }) => isIn(dueMs)))
    return { title, ...hostChanges(withOneBefore(samples, within)), mostServing: mostServing(within), ends }
  }
  const waveMs = PERIODS * 2 * HALF_MS
  const periods = wave
    .filter((_, half) => half % 2 === 0)
    .map((_, index) => stretch(`period ${index + 1}`, index * 2 * HALF_MS, 2 * HALF_MS))
  const idleness = stretch('idle', waveMs, IDLE_MS)
  const bursting = stretch('burst', waveMs + IDLE_MS, BURST_MS + AFTER_BURST_MS)
  return {
    blocks: [
      `calc level ${LEVEL}: ${HALF_MS / 1000} s at ${highPerSecond.toFixed(0)} calls/s (${HIGH_OF_PEAK} of one host's peak), ${HALF_MS / 1000} s at ${LOW_PER_SECOND}/s, and so on; then nothing, then a burst\n${renderTable(COLUMNS, [...periods, idleness, bursting], style)}`,
      decisionBlock(decisions),
    ],
    verdicts: [
      atMost('demand', 'wave: host changes in a period, at most', Math.max(...periods.map(({ changes }) => changes)), 1, String),
      atMost('demand', 'wave: hosts taken away by a burst after a minute of idleness', bursting.shrinks, 0, String),
    ],
    results: { highPerSecond, periods, idleness, bursting, decisions },
  }
}

/** A change between two stretches belongs to the later one. */
function withOneBefore(all: readonly FleetSample[], within: readonly FleetSample[]): readonly FleetSample[] {
  const [first] = within
  const before = first === undefined ? undefined : all[all.indexOf(first) - 1]
  return before === undefined ? within : [before, ...within]
}

const COLUMNS: ReadonlyArray<Column<Stretch>> = [
  { title: 'stretch', align: 'left', text: ({ title }) => title },
  { title: 'host changes', text: ({ changes }) => String(changes) },
  { title: 'of them fewer', text: ({ shrinks }) => String(shrinks) },
  { title: 'most hosts', text: ({ mostServing }) => String(mostServing) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
