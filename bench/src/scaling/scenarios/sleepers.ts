/** A thousand calls at once that sleep for a second: one host from beginning to end. */
import { milliseconds } from '../../lib/quantities.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atMost } from '../../lib/verdict.ts'
import { startBenchServer } from '../../lib/bench-server.ts'
import { SLEEPER_FILE } from '../functions.ts'
import { arrivalsAtOnce } from '../../lib/load/arrivals.ts'
import { callsThat, distributionOf, endLine, latencyMs } from '../../lib/load/call-summary.ts'
import { runLoad } from '../../lib/load/generator.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { everServing, longestGapMs, mostServing } from '../../lib/watch/fleet-sample.ts'

const CALLS = 1_000
const ROUNDS = 3
/** The one that serves, and the standby. */
const EXPECTED_PROCESSES = 2

interface Round {
  readonly ends: string
  readonly notGood: number
  readonly p50Ms: number
  readonly allAnsweredMs: number
  readonly mostServing: number
  /** Hosts that ever took calls. */
  readonly everServing: number
  /** Host processes that were ever there, by the system. */
  readonly processes: number
  readonly samples: number
  readonly longestGapMs: number
  readonly latestStartMs: number
}

export async function measureSleepers({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const rounds: Round[] = []
  for (let round = 0; round < (isQuick ? 1 : ROUNDS); round++) rounds.push(await runRound())
  const worst = (value: (round: Round) => number): number => Math.max(...rounds.map(value))
  return {
    blocks: [
      `${CALLS} calls at once that sleep for 1 s, each over a connection that is open already\n${renderTable(COLUMNS, rounds, style)}`,
    ],
    verdicts: [
      atMost(
        'demand',
        'sleepers: calls without a good answer',
        worst(({ notGood }) => notGood),
        0,
        String,
      ),
      atMost(
        'demand',
        'sleepers: hosts that took calls, from beginning to end',
        worst(({ everServing }) => everServing),
        1,
        String,
      ),
      atMost(
        'demand',
        'sleepers: host processes with the standby',
        worst(({ processes }) => processes),
        EXPECTED_PROCESSES,
        String,
      ),
    ],
    results: rounds,
  }
}

async function runRound(): Promise<Round> {
  await using server = await startBenchServer()
  await server.carpool.deploy(SLEEPER_FILE, 'sleeper')
  await server.untilSettled()
  const watch = await server.watch()
  const { calls, beganMs, endedMs, latestStartMs } = await runLoad({
    origin: server.carpool.url,
    paths: ['/sleeper/?ms=1000'],
    load: { kind: 'open', dueMs: arrivalsAtOnce(CALLS) },
    openConnections: CALLS,
  })
  const samples = await watch.stop()
  return {
    ends: endLine(calls),
    notGood: calls.length - callsThat('good', calls).length,
    p50Ms: distributionOf(calls.map(latencyMs)).p50 ?? Number.NaN,
    allAnsweredMs: endedMs - beganMs,
    mostServing: mostServing(samples),
    everServing: everServing(samples).length,
    processes: new Set(samples.flatMap(({ processes }) => processes.map(({ pid }) => pid))).size,
    samples: samples.length,
    longestGapMs: longestGapMs(samples),
    latestStartMs,
  }
}

const COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
  { title: 'p50', text: ({ p50Ms }) => milliseconds(p50Ms) },
  { title: 'all answered', text: ({ allAnsweredMs }) => milliseconds(allAnsweredMs) },
  { title: 'most hosts at once', text: ({ mostServing }) => String(mostServing) },
  { title: 'host processes', text: ({ processes }) => String(processes) },
  { title: 'samples', text: ({ samples }) => String(samples) },
  { title: 'longest gap', text: ({ longestGapMs }) => milliseconds(longestGapMs) },
  { title: 'latest start', text: ({ latestStartMs }) => milliseconds(latestStartMs) },
]
