/** Good and evil traffic for a long time: what server and hosts hold goes back to where it was, and ledger and clients agree. */
import { setTimeout as delay } from 'node:timers/promises'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { callsThat, distributionOf, endLine, latencyMs } from '../../lib/load/call-summary.ts'
import { megabytes, milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atLeast, atMost, type Verdict } from '../../lib/verdict.ts'
import { startUpstream } from '../../lib/upstream/upstream.ts'
import { agreementOf, type Agreement, type EndCount } from '../agreement.ts'
import { harmedHosts, hostPids } from '../harm.ts'
import { levelVerdicts } from '../level-verdicts.ts'
import { leftHosts, survivors } from '../left-processes.ts'
import { recordsOf } from '../ledger.ts'
import { readLevel, type Level } from '../process-level.ts'
import { deploySoak, type SoakCalls } from '../soak-traffic.ts'

interface Times {
  readonly warmUpMs: number
  /** Nobody calls before the starting level is read. */
  readonly idleMs: number
  readonly soakMs: number
  readonly stuckEveryMs: number
}

const TIMES: Times = { warmUpMs: 20_000, idleMs: 10_000, soakMs: 1_800_000, stuckEveryMs: 20_000 }
const QUICK_TIMES: Times = { warmUpMs: 10_000, idleMs: 10_000, soakMs: 30_000, stuckEveryMs: 10_000 }
/** Everything is back where it was within this time. */
const RETURN_MS = 60_000
const LOOK_MS = 2_000
/** One look in half a second is enough to find what was harmed, and costs little in half an hour. */
const SAMPLE_MS = 500
/** As many hosts before as after: how many there are is not what this is about. */
const FLAGS = ['--allow-egress', '127.0.0.0/8', '--min-hosts', '2', '--max-hosts', '2', '--standby-hosts', '0']
interface Soaked {
  readonly before: Level
  readonly after: Level
  readonly returnedMs: number
  readonly left: number
  readonly harmed: number
  readonly pids: ReadonlySet<number>
  readonly soak: SoakCalls
  readonly agreement: Agreement
}

export async function measureSoak({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const times = isQuick ? QUICK_TIMES : TIMES
  const { before, after, returnedMs, left, harmed, pids, soak, agreement } = await runSoak(times)
  const alive = survivors(pids).length
  const levels = [
    { when: 'before', level: before },
    { when: 'after', level: after },
  ]
  const { p50 = Number.NaN, p99 = Number.NaN } = distributionOf(soak.good.map(latencyMs))
  return {
    blocks: [
      `What server and hosts hold, before ${times.soakMs / 1000} s of good and evil traffic and ${milliseconds(returnedMs)} after it\n${renderTable(LEVEL_COLUMNS, levels, style)}`,
      `Good calls: ${endLine(soak.good)}; p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}; ${harmed} hosts harmed`,
      `What calls came to, by their clients and by the ledger\n${renderTable(COUNT_COLUMNS, withoutStuckNames(agreement.counts), style)}`,
    ],
    verdicts: [
      ...levelVerdicts(before, after),
      atMost('demand', 'soak: host processes that do not leave', left, 0, String),
      atMost('demand', 'soak: host processes that outlive the server', alive, 0, String),
      atLeast('demand', 'soak: hosts harmed, without which this shows less', harmed, 1, String),
      ...checkAgreement(agreement),
      atMost('demand', 'soak: good calls that failed', callsThat('failed', soak.good).length, 0, String),
      atMost('aim', 'soak: good calls that were refused', callsThat('refused', soak.good).length, 0, String),
    ],
    results: { times, before, after, returnedMs, harmed, good: { ends: endLine(soak.good), p50, p99 }, agreement },
  }
}

async function runSoak({ warmUpMs, idleMs, soakMs, stuckEveryMs }: Times): Promise<Soaked> {
  await using upstream = await startUpstream(5)
  await using server = await startBenchServer({ flags: FLAGS })
  const traffic = await deploySoak(server, upstream.url)
  await server.untilSettled()
  const sinceMs = Date.now()
  progress('soak: warm-up')
  const warmUp = await traffic.run(warmUpMs, warmUpMs)
  await delay(idleMs)
  await server.untilSettled()
  const before = await readLevel(server)
  const watch = await server.watch(SAMPLE_MS)
  progress(`soak: ${soakMs / 1000} s, from ${levelText(before)}`)
  const soak = await traffic.run(soakMs, stuckEveryMs)
  const endedMs = performance.now()
  const after = await untilReturned(server, before)
  const returnedMs = performance.now() - endedMs
  progress(`soak: ${milliseconds(returnedMs)} later ${levelText(after)}`)
  const left = await leftHosts(server, 0)
  const samples = await watch.stop()
  const records = (await recordsOf(server)).filter(({ startedAtMs }) => startedAtMs >= sinceMs)
  const agreement = agreementOf([...warmUp.all, ...soak.all], records)
  return { before, after, returnedMs, left, harmed: harmedHosts(samples).length, pids: hostPids(samples), soak, agreement }
}

/** Looks again and again until everything is back where it was, or the time for it is over. */
async function untilReturned(server: BenchServer, before: Level): Promise<Level> {
  const deadlineMs = performance.now() + RETURN_MS
  for (;;) {
    await delay(LOOK_MS)
    // A host may come or go between two looks at it.
    const level = await readLevel(server).catch(() => undefined)
    if (level === undefined) continue
    const isBack = levelVerdicts(before, level).every(({ isMet }) => isMet)
    if (isBack || performance.now() > deadlineMs) return level
  }
}

function checkAgreement({ missing, doubled, different, surplus }: Agreement): Verdict[] {
  return [
    atMost('demand', 'soak: answered calls without a record', missing, 0, String),
    atMost('demand', 'soak: records that there are twice', doubled, 0, String),
    atMost('demand', 'soak: records that tell of another end than the client saw', different, 0, String),
    atMost('demand', 'soak: records that are more than the calls of their function', surplus, 0, String),
  ]
}

/** Each has a name of its own, and is called once. */
function withoutStuckNames(counts: readonly EndCount[]): EndCount[] {
  const groups = Map.groupBy(counts, ({ functionName, end }) => `${functionName.replace(/^stuck-\d+$/, 'stuck')} ${end}`)
  return [...groups].map(([key, rows]) => ({
    functionName: key.split(' ')[0] ?? '',
    end: rows[0]?.end ?? '',
    calls: rows.reduce((sum, { calls }) => sum + calls, 0),
    records: rows.reduce((sum, { records }) => sum + records, 0),
  }))
}

function levelText({ server, hosts, processes }: Level): string {
  const { residentBytes, descriptors, threads } = server
  return `${megabytes(residentBytes)}, ${descriptors} descriptors, ${threads} threads, ${hosts.length} hosts, ${processes} processes`
}

const LEVEL_COLUMNS: ReadonlyArray<Column<{ readonly when: string; readonly level: Level }>> = [
  { title: '', align: 'left', text: ({ when }) => when },
  { title: 'processes', text: ({ level }) => String(level.processes) },
  { title: 'descriptors', text: ({ level }) => String(level.server.descriptors) },
  { title: 'threads', text: ({ level }) => String(level.server.threads) },
  { title: 'memory', text: ({ level }) => megabytes(level.server.residentBytes) },
  { title: 'proportional', text: ({ level }) => megabytes(level.server.proportionalBytes ?? Number.NaN) },
  { title: 'heap', text: ({ level }) => megabytes(level.serverHeapBytes) },
  { title: 'hosts', text: ({ level }) => String(level.hosts.length) },
  { title: 'their memory', text: ({ level }) => level.hosts.map(({ residentBytes }) => megabytes(residentBytes)).join(', ') },
  { title: 'descriptors', text: ({ level }) => level.hosts.map(({ descriptors }) => descriptors).join(', ') },
  { title: 'threads', text: ({ level }) => level.hosts.map(({ threads }) => threads).join(', ') },
]
const COUNT_COLUMNS: ReadonlyArray<Column<EndCount>> = [
  { title: 'function', align: 'left', text: ({ functionName }) => functionName },
  { title: 'end', align: 'left', text: ({ end }) => end },
  { title: 'calls', text: ({ calls }) => String(calls) },
  { title: 'records', text: ({ records }) => String(records) },
]
