/**
 * Twenty functions that never end, called at once on two cores: each is ended at its CPU limit, and a neighbour is answered
 * throughout.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { arrivalsAtOnce } from '../../lib/load/arrivals.ts'
import { endLine } from '../../lib/load/call-summary.ts'
import { runLoad, startGenerator } from '../../lib/load/generator.ts'
import { milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atMost, type Verdict } from '../../lib/verdict.ts'
import { servingHosts } from '../../lib/watch/fleet-sample.ts'
import { handlerBundle } from '../functions.ts'
import { harmedHosts, hostCpuMs } from '../harm.ts'
import { recordsOf } from '../ledger.ts'
import {
  BESIDE_COLUMNS,
  deployNeighbour,
  NEIGHBOUR,
  neighbourFigures,
  neighbourVerdicts,
  type Neighbour,
  type NeighbourFigures,
} from '../neighbour.ts'

const RUNAWAYS = 20
const LIMITS = { cpuMs: 500, wallMs: 60_000 }
/** What a call may use beyond its limit (issue 5). */
const BEYOND_MS = 250
const NEIGHBOUR_PER_SECOND = 20
const ALONE_MS = 10_000
const QUICK_ALONE_MS = 3_000
/** The neighbour's calls go on for no longer than this; they are stopped when all runaways have ended. */
const LONGEST_MS = 120_000
const ROUNDS = 3
const QUICK_ROUNDS = 1
/** How long hosts are looked at when all has ended, to see that nothing runs on. */
const AFTER_MS = 1_000
const SAMPLE_MS = 100

interface Round {
  readonly round: number
  readonly ends: string
  /** Answers that are not that of the CPU limit. */
  readonly otherEnds: number
  readonly lastAnswerMs: number
  /** CPU on the records: the least, and the most. */
  readonly leastCpuMs: number
  readonly mostCpuMs: number
  /** By the system, of all host processes while the runaways were there; and of that the records of the neighbour. */
  readonly hostCpuMs: number
  readonly neighbourCpuMs: number
  readonly harmed: number
  /** Isolates that were entered, and cores that the hosts used, when all had ended. */
  readonly enteredAfter: number
  readonly coresAfter: number
  readonly alone: NeighbourFigures
  readonly beside: NeighbourFigures
}

export async function measureRunaways({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  await using server = await startBenchServer()
  const neighbour = await deployNeighbour(server)
  for (let index = 0; index < RUNAWAYS; index++) await server.deployBundle(nameOf(index), handlerBundle('for (;;) {}'), LIMITS)
  await server.untilSettled()
  const rounds: Round[] = []
  for (let round = 1; round <= (isQuick ? QUICK_ROUNDS : ROUNDS); round++) {
    progress(`runaways: round ${round}, neighbour alone and then beside them`)
    rounds.push(await runRound(server, neighbour, round, isQuick ? QUICK_ALONE_MS : ALONE_MS))
  }
  const { cpuMs } = LIMITS
  return {
    blocks: [
      `${RUNAWAYS} endless functions at once, each with ${cpuMs} ms of CPU\n${renderTable(RUNAWAY_COLUMNS, rounds, style)}`,
      `A neighbour with ${NEIGHBOUR_PER_SECOND} calls/s beside them\n${renderTable(NEIGHBOUR_COLUMNS, rounds, style)}`,
    ],
    verdicts: rounds.flatMap(check),
    results: rounds,
  }
}

async function runRound(server: BenchServer, neighbour: Neighbour, round: number, aloneMs: number): Promise<Round> {
  const { carpool } = server
  // Looking costs a little, so it is done all the time.
  const watch = await server.watch(SAMPLE_MS)
  const alone = await runLoad(neighbour.order({ callsPerSecond: NEIGHBOUR_PER_SECOND, durationMs: aloneMs }))
  const beside = await startGenerator(neighbour.order({ callsPerSecond: NEIGHBOUR_PER_SECOND, durationMs: LONGEST_MS }))
  const attack = await startGenerator({
    origin: carpool.url,
    paths: Array.from({ length: RUNAWAYS }, (_, index) => `/${nameOf(index)}/`),
    load: { kind: 'open', dueMs: arrivalsAtOnce(RUNAWAYS) },
    openConnections: RUNAWAYS,
    keepsIds: true,
  })
  beside.begin()
  attack.begin()
  const { calls, beganMs, endedMs } = await attack.result
  // What a host uses after its last answer is its too.
  await delay(AFTER_MS)
  const samples = (await watch.stop()).filter(({ atMs }) => atMs >= beganMs)
  beside.stop()
  const besideResult = await beside.result
  const ids = new Set(calls.map(({ id }) => id))
  const records = await recordsOf(server)
  const cpuMs = records.filter(({ id }) => ids.has(id)).map((record) => record.cpuMs)
  const ofNeighbour = records.filter(({ functionName, startedAtMs }) => functionName === NEIGHBOUR && startedAtMs >= beganMs)
  return {
    round,
    ends: endLine(calls),
    otherEnds: calls.filter(({ status, code }) => status !== 502 || code !== 'cpu-exceeded').length,
    lastAnswerMs: endedMs - beganMs,
    leastCpuMs: Math.min(...cpuMs),
    mostCpuMs: Math.max(...cpuMs),
    hostCpuMs: hostCpuMs(samples),
    neighbourCpuMs: ofNeighbour.reduce((sum, record) => sum + record.cpuMs, 0),
    harmed: harmedHosts(samples).length,
    ...(await lookAfter(server)),
    alone: neighbourFigures(alone),
    beside: neighbourFigures(besideResult),
  }
}

async function lookAfter(server: BenchServer): Promise<Pick<Round, 'enteredAfter' | 'coresAfter'>> {
  const watch = await server.watch()
  await delay(AFTER_MS)
  const samples = await watch.stop()
  const [first, last] = [samples[0], samples.at(-1)]
  // One that starts needs CPU for that.
  const serving = new Set(servingHosts(first ?? { hosts: [] }).map(({ pid }) => pid))
  const used = samples.map(({ processes }) => ({ processes: processes.filter(({ pid }) => serving.has(pid)) }))
  return {
    enteredAfter: last?.hosts.reduce((sum, { enteredIsolates }) => sum + enteredIsolates, 0) ?? Number.NaN,
    coresAfter: hostCpuMs(used) / ((last?.atMs ?? 0) - (first?.atMs ?? 0)),
  }
}

function nameOf(index: number): string {
  return `runaway-${index}`
}

function check({
  round,
  otherEnds,
  mostCpuMs,
  hostCpuMs: allMs,
  neighbourCpuMs,
  harmed,
  enteredAfter,
  coresAfter,
  alone,
  beside,
}: Round): Verdict[] {
  const claim = `runaways, round ${round}`
  const mostEach = LIMITS.cpuMs + BEYOND_MS
  return [
    atMost('demand', `${claim}: calls that did not end with 502 cpu-exceeded`, otherEnds, 0, String),
    atMost('demand', `${claim}: most CPU on a record`, mostCpuMs, mostEach, milliseconds),
    atMost(
      'aim',
      `${claim}: CPU of the hosts without the neighbour's calls`,
      allMs - neighbourCpuMs,
      RUNAWAYS * mostEach,
      milliseconds,
    ),
    atMost('demand', `${claim}: isolates that run on`, enteredAfter, 0, String),
    atMost('aim', `${claim}: cores in use when all have ended`, coresAfter, 0.1, (value) => value.toFixed(2)),
    atMost('aim', `${claim}: hosts harmed`, harmed, 0, String),
    ...neighbourVerdicts(claim, alone, beside),
  ]
}

const RUNAWAY_COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'round', text: ({ round }) => String(round) },
  { title: 'last answer', text: ({ lastAnswerMs }) => milliseconds(lastAnswerMs) },
  { title: 'least CPU', text: ({ leastCpuMs }) => milliseconds(leastCpuMs) },
  { title: 'most CPU', text: ({ mostCpuMs }) => milliseconds(mostCpuMs) },
  { title: 'CPU of hosts', text: (round) => milliseconds(round.hostCpuMs) },
  { title: 'of it neighbour', text: ({ neighbourCpuMs }) => milliseconds(neighbourCpuMs) },
  { title: 'hosts harmed', text: ({ harmed }) => String(harmed) },
  { title: 'entered after', text: ({ enteredAfter }) => String(enteredAfter) },
  { title: 'cores after', text: ({ coresAfter }) => coresAfter.toFixed(2) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
const NEIGHBOUR_COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'round', text: ({ round }) => String(round) },
  ...BESIDE_COLUMNS,
]
