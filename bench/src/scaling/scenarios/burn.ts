/** Load that is bound by the CPU: a second host serves soon after the first is saturated, and adds its core. */
import { setTimeout as delay } from 'node:timers/promises'
import type { InvocationRecord, ScalingDecisionInfo } from '@carpool/core'
import { milliseconds, times } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import { median } from '../../lib/statistics.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost } from '../../lib/verdict.ts'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { decisionBlock } from '../decision-line.ts'
import { CALC_FOLDER, calcPath } from '../functions.ts'
import { endLine } from '../../lib/load/call-summary.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import { closedLoopRate } from '../peak.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { servingHosts, type FleetSample } from '../../lib/watch/fleet-sample.ts'

const LEVEL = 5
const ROUNDS = 3
const PAIRS = 5
const SATURATED_CORES = 0.95
const SATURATED_RUN_DELAY_MS = 5
const SECOND_HOST_LIMIT_MS = 2_000
const RATIO_DEMAND = 1.6

const RISING_CLIENTS = 8
const RAMP_MS = 1_500
const RISE_TIMEOUT_MS = 30_000
/** Load goes on for so long after the second host is there, so that it surely has answered. */
const AFTERWARDS_MS = 1_500
/** As many as the control plane gives. */
const RECORDS = 1_000

const PAIR_CLIENTS = 8
const PAIR_MS = 4_000

interface Rise {
  /** From the beginning of the load until the first host was saturated. */
  readonly untilSaturatedMs: number
  /** From then until the second host had answered a call; not a number if that did not happen. */
  readonly secondHostMs: number
  /**
   * The same from when the second client began: two clients of a host with one core are saturation, before any figure can show
   * it.
   */
  readonly fromSecondClientMs: number
  /** Cores of the machine that were busy when the first host was saturated: another host needs a spare one. */
  readonly busyCores: number
  readonly ends: string
  readonly decisions: readonly ScalingDecisionInfo[]
}

interface Pair {
  readonly one: number
  readonly two: number
}

export async function measureBurn({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const rises: Rise[] = []
  for (let round = 0; round < (isQuick ? 1 : ROUNDS); round++) rises.push(await rise())
  const pairs = await runPairs(isQuick ? 2 : PAIRS)
  const ratio = median(pairs.map(({ one, two }) => two / one))
  const slowestMs = (value: (rise: Rise) => number): number =>
    Math.max(...rises.map((rise) => (Number.isNaN(value(rise)) ? RISE_TIMEOUT_MS : value(rise))))
  return {
    blocks: [
      `calc level ${LEVEL}, one more client every ${RAMP_MS} ms; saturated: p90 run delay above ${SATURATED_RUN_DELAY_MS} ms and ${SATURATED_CORES} of a core\n${renderTable(RISE_COLUMNS, rises, style)}`,
      decisionBlock(rises.flatMap(({ decisions }) => decisions)),
      `Calls per second of ${PAIR_CLIENTS} clients, in pairs\n${renderTable(PAIR_COLUMNS, pairs, style)}`,
    ],
    verdicts: [
      atMost(
        'demand',
        'burn: from saturation until the second host has answered',
        slowestMs(({ secondHostMs }) => secondHostMs),
        SECOND_HOST_LIMIT_MS,
        milliseconds,
      ),
      atMost(
        'aim',
        'burn: the same from the second client on',
        slowestMs(({ fromSecondClientMs }) => fromSecondClientMs),
        SECOND_HOST_LIMIT_MS,
        milliseconds,
      ),
      atLeast('demand', 'burn: calls per second of two hosts against one, median of the pairs', ratio, RATIO_DEMAND, times),
    ],
    results: { rises, pairs, ratio },
  }
}

async function rise(): Promise<Rise> {
  await using server = await startBenchServer()
  const { carpool } = server
  await carpool.deploy(CALC_FOLDER, 'calc')
  await server.untilSettled()
  const watch = await server.watch()
  const generator = await startGenerator({
    origin: carpool.url,
    paths: [calcPath('calc', LEVEL)],
    load: { kind: 'closed', clients: RISING_CLIENTS, rampMs: RAMP_MS, durationMs: RISE_TIMEOUT_MS },
  })
  const sinceMs = Math.floor(epochMs())
  generator.begin()
  await untilSecondHost(server)
  await delay(AFTERWARDS_MS)
  generator.stop()
  const { calls, beganMs } = await generator.result
  const samples = await watch.stop()
  const records = await carpool.invocations({ functionName: 'calc', sinceMs, limit: RECORDS })
  const { decisions } = await server.status()
  const saturated = samples.find(isSaturated)
  const saturatedMs = saturated?.atMs ?? Number.NaN
  const answeredMs = firstAnswerOfOther(records, samples[0])
  return {
    untilSaturatedMs: saturatedMs - beganMs,
    secondHostMs: answeredMs - saturatedMs,
    fromSecondClientMs: answeredMs - (beganMs + RAMP_MS),
    busyCores: saturated?.machineBusyCores ?? Number.NaN,
    ends: endLine(calls),
    decisions: decisions.toReversed(),
  }
}

function isSaturated(sample: FleetSample): boolean {
  return servingHosts(sample).some(
    ({ cpuCores, runDelayMs }) => cpuCores >= SATURATED_CORES && runDelayMs.p90 > SATURATED_RUN_DELAY_MS,
  )
}

/** When a host that did not serve at first had answered a call; not a number if none has. */
function firstAnswerOfOther(records: readonly InvocationRecord[], first: FleetSample | undefined): number {
  const atFirst = new Set(first === undefined ? [] : servingHosts(first).map(({ id }) => id))
  const answers = records.filter(({ outcome, host }) => outcome === 'ok' && !atFirst.has(host))
  return answers.length === 0 ? Number.NaN : Math.min(...answers.map(({ startedAtMs, wallUs }) => startedAtMs + wallUs / 1000))
}

/** Without a second host there are still figures, and they say so. */
async function untilSecondHost(server: BenchServer): Promise<void> {
  await server
    .until('a second host', (status) => servingHosts(status).length > 1, RISE_TIMEOUT_MS)
    .catch((error: Error) => progress(`burn: ${error.message}`))
}

/** Both servers are there all the time, and are loaded in turns. */
async function runPairs(count: number): Promise<Pair[]> {
  await using one = await startBenchServer({ flags: ['--max-hosts', '1'] })
  await using two = await startBenchServer({ flags: ['--max-hosts', '2'] })
  for (const server of [one, two]) await server.carpool.deploy(CALC_FOLDER, 'calc')
  const options = { paths: [calcPath('calc', LEVEL)], clients: PAIR_CLIENTS, durationMs: PAIR_MS }
  const isGrown = untilSecondHost(two)
  await closedLoopRate(two, { ...options, durationMs: 3 * PAIR_MS })
  await isGrown
  const pairs: Pair[] = []
  for (let pair = 0; pair < count; pair++) {
    const rates = { one: 0, two: 0 }
    const order = pair % 2 === 0 ? (['one', 'two'] as const) : (['two', 'one'] as const)
    for (const which of order) rates[which] = await closedLoopRate(which === 'one' ? one : two, options)
    progress(`burn: pair ${pair + 1} of ${count}: ${rates.one.toFixed(1)} and ${rates.two.toFixed(1)} calls/s`)
    pairs.push(rates)
  }
  return pairs
}

const RISE_COLUMNS: ReadonlyArray<Column<Rise>> = [
  { title: 'saturated after', text: ({ untilSaturatedMs }) => milliseconds(untilSaturatedMs) },
  { title: 'second host has answered', text: ({ secondHostMs }) => milliseconds(secondHostMs) },
  { title: 'from the second client', text: ({ fromSecondClientMs }) => milliseconds(fromSecondClientMs) },
  { title: 'busy cores then', text: ({ busyCores }) => busyCores.toFixed(2) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
const PAIR_COLUMNS: ReadonlyArray<Column<Pair>> = [
  { title: '--max-hosts 1', text: ({ one }) => one.toFixed(1) },
  { title: '--max-hosts 2', text: ({ two }) => two.toFixed(1) },
  { title: 'ratio', text: ({ one, two }) => times(two / one) },
]
