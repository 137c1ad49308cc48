/** Hosts that leave while calls go on: none of them fails. */
import { progress } from '../../lib/report.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost } from '../../lib/verdict.ts'
import { startBenchServer } from '../../lib/bench-server.ts'
import { decisionBlock } from '../decision-line.ts'
import { CALC_FOLDER, calcPath, SLEEPER_FILE } from '../functions.ts'
import { evenArrivals, type Phase } from '../../lib/load/arrivals.ts'
import { callsThat, endLine } from '../../lib/load/call-summary.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import { oneHostPeak } from '../peak.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { hostChanges, mostServing } from '../../lib/watch/fleet-sample.ts'

const LEVEL = 5
const HIGH_OF_PEAK = 1.5
const LOW_OF_PEAK = 0.3
const HIGH_MS = 8_000
const LOW_MS = 12_000
const WAVES = 3
/** Calls that take long are in flight in a host whenever it is told to leave. */
const SLEEPING_PER_SECOND = 50
const LEAD_MS = 100

/** As quick as the settings allow, so that hosts come and go within a minute. */
const FLAGS = Object.entries({
  'max-hosts': 2,
  'saturation-window-ms': 1_000,
  'grow-pause-ms': 0,
  'shrink-window-ms': 2_000,
  'shrink-pause-ms': 0,
}).flatMap(([flag, value]) => [`--${flag}`, String(value)])

interface Stream {
  readonly title: string
  readonly calls: number
  readonly failed: number
  readonly ends: string
}

export async function measureScaleIn({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const peak = await oneHostPeak(LEVEL)
  await using server = await startBenchServer({ flags: FLAGS })
  await server.carpool.deploy(CALC_FOLDER, 'calc')
  await server.carpool.deploy(SLEEPER_FILE, 'sleeper')
  await server.untilSettled()
  const wave: readonly Phase[] = [
    { callsPerSecond: HIGH_OF_PEAK * peak, durationMs: HIGH_MS },
    { callsPerSecond: LOW_OF_PEAK * peak, durationMs: LOW_MS },
  ]
  const waves = Array.from({ length: isQuick ? 1 : WAVES }, () => wave).flat()
  const durationMs = waves.reduce((sum, phase) => sum + phase.durationMs, 0)
  const loads = [
    { title: `calc level ${LEVEL}`, path: calcPath('calc', LEVEL), dueMs: evenArrivals(waves) },
    {
      title: 'sleep 500 ms',
      path: '/sleeper/?ms=500',
      dueMs: evenArrivals([{ callsPerSecond: SLEEPING_PER_SECOND, durationMs }]),
    },
  ]
  progress(`scale-in: ${durationMs / 1000} s of load that rises and falls`)
  const generators = await Promise.all(
    loads.map(({ path, dueMs }) => startGenerator({ origin: server.carpool.url, paths: [path], load: { kind: 'open', dueMs } })),
  )
  const watch = await server.watch()
  const beginMs = epochMs() + LEAD_MS
  for (const generator of generators) generator.begin(beginMs)
  const results = await Promise.all(generators.map(({ result }) => result))
  const samples = await watch.stop()
  const decisions = (await server.status()).decisions.toReversed()
  const streams: Stream[] = loads.map(({ title }, index) => {
    const { calls } = results[index] ?? { calls: [] }
    return { title, calls: calls.length, failed: callsThat('failed', calls).length, ends: endLine(calls) }
  })
  const { changes, shrinks } = hostChanges(samples)
  return {
    blocks: [
      `Load of ${HIGH_OF_PEAK} and ${LOW_OF_PEAK} of one host's peak in turns, ${FLAGS.join(' ')}: ${changes} host changes, ${shrinks} of them fewer, at most ${mostServing(samples)} hosts\n${renderTable(COLUMNS, streams, style)}`,
      decisionBlock(decisions),
    ],
    verdicts: [
      atMost(
        'demand',
        'scale-in: failed calls',
        streams.reduce((sum, { failed }) => sum + failed, 0),
        0,
        String,
      ),
      atLeast('demand', 'scale-in: hosts that left, without which this shows nothing', shrinks, 1, String),
    ],
    results: { peak, streams, changes, shrinks, decisions },
  }
}

const COLUMNS: ReadonlyArray<Column<Stream>> = [
  { title: 'calls of', align: 'left', text: ({ title }) => title },
  { title: 'calls', text: ({ calls }) => String(calls) },
  { title: 'failed', text: ({ failed }) => String(failed) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
