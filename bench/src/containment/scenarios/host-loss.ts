/**
 * Host processes that are killed at random under load: only what was in flight there fails, at once, and what may be asked
 * twice succeeds.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { distributionOf, endLine, latencyMs } from '../../lib/load/call-summary.ts'
import { startGenerator } from '../../lib/load/generator.ts'
import { seededRandom } from '../../lib/load/random.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import { milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { untilStandby } from '../../lib/standby.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost, type Verdict } from '../../lib/verdict.ts'
import { servingHosts } from '../../lib/watch/fleet-sample.ts'
import { agreementOf, clientEnd, type Agreement } from '../agreement.ts'
import { killNow, type Kill } from '../kills.ts'
import { recordsOf } from '../ledger.ts'
import { lossFigures, type LossFigures } from '../loss-figures.ts'
import { deployNeighbour, NEIGHBOUR } from '../neighbour.ts'

/** Of each method: half of 200 in all. */
const CALLS_PER_SECOND = 100
const WORK = { cpuMs: 1, waitMs: 20 }
const DURATION_MS = 120_000
const QUICK_DURATION_MS = 15_000
const KILL_EVERY_MS = 5_000
const QUICK_KILL_EVERY_MS = 2_500
const LEAD_MS = 100
const SEED = 5
/** Within which a lost call must be answered (issue 5). */
const ANSWER_MS = 100

export async function measureHostLoss({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const durationMs = isQuick ? QUICK_DURATION_MS : DURATION_MS
  await using server = await startBenchServer({ flags: ['--min-hosts', '2'] })
  const neighbour = await deployNeighbour(server)
  await server.untilSettled()
  const hadStandby = await untilStandby(server.carpool)
  const order = {
    ...neighbour.order({ callsPerSecond: CALLS_PER_SECOND, durationMs, ...WORK }),
    openConnections: 10,
    keepsIds: true,
  }
  const generators = {
    GET: await startGenerator({ ...order, method: 'GET' }),
    POST: await startGenerator({ ...order, method: 'POST' }),
  }
  const sinceMs = Date.now()
  const beginMs = epochMs() + LEAD_MS
  generators.GET.begin(beginMs)
  // Between two of the others.
  generators.POST.begin(beginMs + 500 / CALLS_PER_SECOND)
  const kills = await killAtRandom(server, beginMs, durationMs, isQuick ? QUICK_KILL_EVERY_MS : KILL_EVERY_MS)
  const results = { GET: await generators.GET.result, POST: await generators.POST.result }
  const records = (await recordsOf(server)).filter(({ startedAtMs }) => startedAtMs >= sinceMs)
  const kinds = [lossFigures('GET', results.GET.calls, kills, records), lossFigures('POST', results.POST.calls, kills, records)]
  const calls = kinds.flatMap((kind) => kind.calls)
  const agreement = agreementOf(
    calls.map((call) => ({ functionName: NEIGHBOUR, ...(call.id !== undefined && { id: call.id }), end: clientEnd(call) })),
    records,
  )
  const states = (await server.functions()).map(({ name, state }) => ({ name, state }))
  const { hosts } = await server.status()
  const blamed = states.filter(({ state }) => state !== 'active').length
  const quarantined = hosts.filter(({ quarantineOf }) => quarantineOf !== undefined).length
  const dyingMs = distributionOf(kills.map(({ atMs, goneMs }) => goneMs - atMs))
  return {
    blocks: [
      [
        `${2 * CALLS_PER_SECOND} calls/s for ${durationMs / 1000} s, ${kills.length} hosts killed, ${hadStandby ? 'one' : 'none'} in reserve at the beginning;`,
        `from the signal to the end of a process: at most ${milliseconds(dyingMs.max ?? Number.NaN)}`,
        `\n${renderTable(COLUMNS, kinds, style)}`,
      ].join(' '),
    ],
    verdicts: [
      atLeast('demand', 'host-loss: hosts killed, without which this shows nothing', kills.length, 1, String),
      ...kinds.flatMap(check),
      ...checkLedger(agreement),
      atMost('demand', 'host-loss: functions that were blamed', blamed + quarantined, 0, String),
    ],
    results: {
      hadStandby,
      kills,
      kinds: kinds.map(({ calls: all, ...kind }) => ({ ...kind, calls: all.length })),
      agreement,
      states,
    },
  }
}

/** Kills one of the hosts that take calls, again and again. */
async function killAtRandom(server: BenchServer, beginMs: number, durationMs: number, everyMs: number): Promise<Kill[]> {
  const random = seededRandom(SEED)
  const kills: Kill[] = []
  for (let atMs = everyMs; atMs < durationMs; atMs += everyMs) {
    await delay(Math.max(0, beginMs + atMs - epochMs()))
    const serving = servingHosts(await server.status())
    const victim = serving[Math.floor(random() * serving.length)]
    if (victim === undefined) continue
    kills.push(await killNow(victim.pid))
    progress(`host-loss: killed one of ${serving.length} hosts after ${Math.round(atMs / 1000)} s`)
  }
  return kills
}

function check({ method, failed, lost, unexplained, slowestAnswerMs, again }: LossFigures): Verdict[] {
  if (method === 'GET') {
    return [
      atMost('demand', 'host-loss: GET calls that failed', failed, 0, String),
      atLeast('demand', 'host-loss: GET calls begun again, without which this shows nothing', again, 1, String),
    ]
  }
  return [
    atLeast('demand', 'host-loss: POST calls lost, without which this shows nothing', lost, 1, String),
    atMost('demand', 'host-loss: POST calls that failed in another way than by the host-lost of a kill', unexplained, 0, String),
    atMost('demand', 'host-loss: from a kill to the latest answer to a lost call', slowestAnswerMs, ANSWER_MS, milliseconds),
    atMost('demand', 'host-loss: POST calls begun again', again, 0, String),
  ]
}

function checkLedger({ missing, doubled, different, unclaimed }: Agreement): Verdict[] {
  return [
    atMost('demand', 'host-loss: answered calls without a record', missing, 0, String),
    atMost('demand', 'host-loss: records that there are twice, or that belong to no call', doubled + unclaimed, 0, String),
    atMost('demand', 'host-loss: records that tell of another end than the client saw', different, 0, String),
  ]
}

const COLUMNS: ReadonlyArray<Column<LossFigures>> = [
  { title: 'method', align: 'left', text: ({ method }) => method },
  { title: 'calls', text: ({ calls }) => String(calls.length) },
  { title: 'p99', text: ({ calls }) => milliseconds(distributionOf(calls.map(latencyMs)).p99 ?? Number.NaN) },
  { title: 'begun again', text: ({ again }) => String(again) },
  { title: 'slowest of these', text: ({ slowestAgainMs }) => milliseconds(slowestAgainMs) },
  { title: 'failed', text: ({ failed }) => String(failed) },
  { title: 'of them lost', text: ({ lost }) => String(lost) },
  { title: 'sent before the signal', text: ({ lostSentBefore }) => String(lostSentBefore) },
  { title: 'latest answer', text: ({ slowestAnswerMs }) => milliseconds(slowestAnswerMs) },
  { title: 'answers', align: 'left', text: ({ calls }) => endLine(calls) },
]
