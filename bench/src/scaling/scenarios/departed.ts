/** Clients that leave before their call could begin, in front of a saturated host: none of these calls is begun any more. */
import type { LogLine } from '@carpool/core'
import { milliseconds } from '../../lib/quantities.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost } from '../../lib/verdict.ts'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { CALC_FOLDER, calcPath, loggingCalcBundle } from '../functions.ts'
import { evenArrivals } from '../../lib/load/arrivals.ts'
import { callsThat, endLine } from '../../lib/load/call-summary.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { entriesOfDeparted, parseStarts, type Start } from './departed-entries.ts'

const LEVEL = 6
const LEAVING_PER_SECOND = 40
const PATIENCE_MS = 100
const RUN_MS = 15_000
const QUICK_RUN_MS = 5_000
/** Clients that stay, of another function: they keep the host saturated. */
const STAYING_CLIENTS = 3
/**
 * What it may take until the news of a closed connection has come from the kernel through the server to the host. An entry that
 * begins within this time could not be known to be for nobody.
 */
const NEWS_MS = 20
const MOST_LOG_LINES = 10_000

interface Departures {
  readonly calls: number
  readonly left: number
  readonly starts: number
  /** Entries that began after their client had closed its connection. */
  readonly afterDeparture: number
  /** Of these, more than the time after it that news may take. */
  readonly withNews: number
  /** The latest of them after the departure of its client. */
  readonly latestMs: number
  readonly ends: string
  readonly stayingEnds: string
  readonly latestStartMs: number
}

export async function measureDeparted({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  await using server = await startBenchServer({ flags: ['--max-hosts', '1'] })
  await server.carpool.deploy(CALC_FOLDER, 'staying')
  await server.deployBundle('leaving', loggingCalcBundle())
  await server.untilSettled()
  const departures = await runDepartures(server, isQuick ? QUICK_RUN_MS : RUN_MS)
  return {
    blocks: [
      `calc level ${LEVEL}, ${LEAVING_PER_SECOND} calls/s by clients that leave after ${PATIENCE_MS} ms, beside ${STAYING_CLIENTS} that stay\n${renderTable(COLUMNS, [departures], style)}`,
    ],
    verdicts: [
      atMost('demand', `departed: entries begun more than ${NEWS_MS} ms after their client left`, departures.withNews, 0, String),
      atLeast('demand', 'departed: clients that left, without which this shows nothing', departures.left, 1, String),
      atLeast('demand', 'departed: entries that were logged, likewise', departures.starts, 1, String),
    ],
    results: departures,
  }
}

async function runDepartures(server: BenchServer, durationMs: number): Promise<Departures> {
  const origin = server.carpool.url
  const count = Math.round((LEAVING_PER_SECOND * durationMs) / 1000)
  const leaving = await startGenerator({
    origin,
    paths: Array.from({ length: count }, (_, call) => `${calcPath('leaving', LEVEL)}&call=${call}`),
    load: { kind: 'open', dueMs: evenArrivals([{ callsPerSecond: LEAVING_PER_SECOND, durationMs }]) },
    leaveAfterMs: PATIENCE_MS,
    // It has next to nothing to do, and its notion of when a client left must not wait for a core.
    takesPrecedence: true,
  })
  const staying = await startGenerator({
    origin,
    paths: [calcPath('staying', LEVEL)],
    load: { kind: 'closed', clients: STAYING_CLIENTS, heedsRetryAfter: true },
  })
  staying.begin()
  leaving.begin(epochMs() + 500)
  const { calls, latestStartMs } = await leaving.result
  staying.stop()
  const stayed = await staying.result
  const starts = await readStarts(server)
  const late = entriesOfDeparted(calls, starts)
  return {
    calls: calls.length,
    left: callsThat('left', calls).length,
    starts: starts.length,
    afterDeparture: late.length,
    withNews: late.filter((ms) => ms > NEWS_MS).length,
    latestMs: Math.max(0, ...late),
    ends: endLine(calls),
    stayingEnds: endLine(stayed.calls),
    latestStartMs,
  }
}

/** What the function itself said, in the order of its log. */
async function readStarts(server: BenchServer): Promise<Start[]> {
  const output = await server.carpool.command('logs', 'leaving', '--limit', String(MOST_LOG_LINES), '--json')
  return parseStarts((JSON.parse(output) as LogLine[]).filter(({ stream }) => stream === 'console').map(({ msg }) => msg))
}

const COLUMNS: ReadonlyArray<Column<Departures>> = [
  { title: 'calls', text: ({ calls }) => String(calls) },
  { title: 'left', text: ({ left }) => String(left) },
  { title: 'entries', text: ({ starts }) => String(starts) },
  { title: 'after departure', text: ({ afterDeparture }) => String(afterDeparture) },
  { title: `by more than ${NEWS_MS} ms`, text: ({ withNews }) => String(withNews) },
  { title: 'latest', text: ({ latestMs }) => milliseconds(latestMs) },
  { title: 'latest start', text: ({ latestStartMs }) => milliseconds(latestStartMs) },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
  { title: 'answers to those who stay', align: 'left', text: ({ stayingEnds }) => stayingEnds },
]
