/**
 * A server that is told to end while it is under load: no call fails, neither one that was there nor one on a connection that
 * is kept.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost } from '../../lib/verdict.ts'
import { startBenchServer } from '../../lib/bench-server.ts'
import { CALC_FOLDER, calcPath, SLEEPER_FILE } from '../functions.ts'
import { endLine, endOf } from '../../lib/load/call-summary.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import type { ClosedOrder } from '../../lib/load/load-order.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'

const ROUNDS = 8
const QUICK_ROUNDS = 2
const LOADED_MS = 1_500

interface Clients {
  readonly path: string
  readonly load: ClosedOrder
}

const KEPT = { kind: 'closed', endsWithConnection: true } as const
/** Some always have a call under way; some pause, so that their connections are idle when the signal comes. */
const CLIENTS: readonly Clients[] = [
  { path: '/sleeper/?ms=200', load: { ...KEPT, clients: 32 } },
  { path: calcPath('calc', 3), load: { ...KEPT, clients: 8 } },
  { path: '/sleeper/?ms=5', load: { ...KEPT, clients: 16, pauseMs: 10 } },
]

interface Round {
  readonly before: number
  readonly failedBefore: string
  readonly underWay: number
  readonly after: number
  readonly failedAfter: string
  readonly failures: { readonly before: number; readonly after: number }
  readonly endedMs: number
}

export async function measureShutdown({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const rounds: Round[] = []
  for (let round = 0; round < (isQuick ? QUICK_ROUNDS : ROUNDS); round++) {
    rounds.push(await runRound())
    progress(`shutdown: round ${round + 1}, server ended after ${milliseconds(rounds.at(-1)?.endedMs ?? Number.NaN)}`)
  }
  const sum = (value: (round: Round) => number): number => rounds.reduce((total, round) => total + value(round), 0)
  return {
    blocks: [`SIGTERM under load; clients stop when their connection is closed to them\n${renderTable(COLUMNS, rounds, style)}`],
    verdicts: [
      atMost(
        'demand',
        'shutdown: failed calls that were sent before the signal',
        sum(({ failures }) => failures.before),
        0,
        String,
      ),
      atMost(
        'demand',
        'shutdown: failed calls on kept connections after it',
        sum(({ failures }) => failures.after),
        0,
        String,
      ),
      atLeast(
        'demand',
        'shutdown: calls under way at the signal, without which this shows nothing',
        sum(({ underWay }) => underWay),
        1,
        String,
      ),
    ],
    results: rounds,
  }
}

async function runRound(): Promise<Round> {
  await using server = await startBenchServer()
  const { carpool } = server
  await carpool.deploy(SLEEPER_FILE, 'sleeper')
  await carpool.deploy(CALC_FOLDER, 'calc')
  await server.untilSettled()
  const generators = await Promise.all(
    CLIENTS.map(({ path, load }) => startGenerator({ origin: carpool.url, paths: [path], load })),
  )
  for (const generator of generators) generator.begin()
  await delay(LOADED_MS)
  const signalMs = epochMs()
  await carpool.stop()
  const endedMs = epochMs() - signalMs
  for (const generator of generators) generator.stop()
  const calls = (await Promise.all(generators.map(({ result }) => result))).flatMap((result) => result.calls)
  const before = calls.filter(({ sentMs }) => sentMs < signalMs)
  const after = calls.filter(({ sentMs }) => sentMs >= signalMs)
  const failed = [before, after].map((some) => some.filter((call) => endOf(call) !== 'good'))
  const [failedBefore = [], failedAfter = []] = failed
  return {
    before: before.length,
    failedBefore: endLine(failedBefore),
    underWay: before.filter((call) => call.endedMs >= signalMs).length,
    after: after.length,
    failedAfter: endLine(failedAfter),
    failures: { before: failedBefore.length, after: failedAfter.length },
    endedMs,
  }
}

const COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'sent before', text: ({ before }) => String(before) },
  { title: 'of them failed', align: 'left', text: ({ failedBefore }) => failedBefore },
  { title: 'under way at the signal', text: ({ underWay }) => String(underWay) },
  { title: 'sent after', text: ({ after }) => String(after) },
  { title: 'of them failed', align: 'left', text: ({ failedAfter }) => failedAfter },
  { title: 'server ended after', text: ({ endedMs }) => milliseconds(endedMs) },
]
