/**
 * What aborts or freezes a process, called once a second beside a neighbour: the neighbour loses nothing, and the offender is
 * disabled.
 */
import { startBenchServer } from '../../lib/bench-server.ts'
import { evenArrivals } from '../../lib/load/arrivals.ts'
import { runLoad, startGenerator } from '../../lib/load/generator.ts'
import { epochMs } from '../../lib/load/timed-call.ts'
import { milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { untilStandby } from '../../lib/standby.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { atMost, type Verdict } from '../../lib/verdict.ts'
import { watchDisabling } from '../disabling.ts'
import { fateVerdict, offenderFigures, type OffenderFigures } from '../fate.ts'
import { handlerBundle } from '../functions.ts'
import { harmedHosts, hostPids } from '../harm.ts'
import { leftHosts, survivors } from '../left-processes.ts'
import { BESIDE_COLUMNS, deployNeighbour, neighbourFigures, neighbourVerdicts, type NeighbourFigures } from '../neighbour.ts'
import { KILLERS, type Offender } from '../offenders.ts'

const NEIGHBOUR_PER_SECOND = 50
const ALONE_MS = 20_000
const BESIDE_MS = 60_000
const QUICK_ALONE_MS = 4_000
const QUICK_BESIDE_MS = 10_000
/** Both generators begin together so long after they were told. */
const LEAD_MS = 100
const SAMPLE_MS = 100
/** Longer than a poisoned host gets to drain. */
const LEAVING_MS = 20_000

interface Run {
  readonly title: string
  readonly offenders: readonly OffenderFigures[]
  /** Whether a host was in reserve when it began. */
  readonly hadStandby: boolean
  readonly harmed: number
  readonly hostProcesses: number
  readonly alone: NeighbourFigures
  readonly beside: NeighbourFigures
  /** Host processes that were still there when all should have left, and when the server had ended. */
  readonly left: number
  readonly survivors: number
}

export async function measureKillers({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const runs: Run[] = []
  const groups = [...KILLERS.map((offender) => [offender]), KILLERS]
  for (const offenders of groups) {
    const run = await runBeside(titleOf(offenders), offenders, isQuick)
    runs.push(run)
    progress(
      `killers: ${run.title}: ${run.harmed} hosts harmed, ${run.beside.lost} neighbour calls lost, ${run.beside.wrong} wrong`,
    )
  }
  const rows = runs.flatMap((run) => run.offenders.map((offender) => ({ run: run.title, ...offender })))
  const seconds = (isQuick ? QUICK_BESIDE_MS : BESIDE_MS) / 1000
  return {
    blocks: [
      `Each called once a second for ${seconds} s\n${renderTable(OFFENDER_COLUMNS, rows, style)}`,
      `A neighbour with ${NEIGHBOUR_PER_SECOND} calls/s beside them\n${renderTable(RUN_COLUMNS, runs, style)}`,
    ],
    verdicts: runs.flatMap((run) => check(run, isQuick)),
    results: runs,
  }
}

async function runBeside(title: string, offenders: readonly Offender[], isQuick: boolean): Promise<Run> {
  const pids = new Set<number>()
  const run = await (async () => {
    await using server = await startBenchServer()
    const neighbour = await deployNeighbour(server)
    for (const { name, body, limits } of offenders) await server.deployBundle(name, handlerBundle(body), limits)
    await server.untilSettled()
    const hadStandby = await untilStandby(server.carpool)
    progress(`killers: neighbour alone, then beside ${title}`)
    // Looking costs a little, so it is done all the time.
    const watch = await server.watch(SAMPLE_MS)
    const disabling = watchDisabling(server)
    const aloneMs = isQuick ? QUICK_ALONE_MS : ALONE_MS
    const alone = await runLoad(neighbour.order({ callsPerSecond: NEIGHBOUR_PER_SECOND, durationMs: aloneMs }))
    const durationMs = isQuick ? QUICK_BESIDE_MS : BESIDE_MS
    const besideIt = await startGenerator(neighbour.order({ callsPerSecond: NEIGHBOUR_PER_SECOND, durationMs }))
    const attack = await startGenerator({
      origin: server.carpool.url,
      paths: offenders.map(({ name }) => `/${name}/`),
      load: { kind: 'open', dueMs: evenArrivals([{ callsPerSecond: offenders.length, durationMs }]) },
    })
    const beginMs = epochMs() + LEAD_MS
    besideIt.begin(beginMs)
    attack.begin(beginMs)
    const [beside, attacked] = await Promise.all([besideIt.result, attack.result])
    const left = await leftHosts(server, LEAVING_MS)
    const { disabledAtMs, states } = await disabling.stop()
    const samples = await watch.stop()
    for (const pid of hostPids(samples)) pids.add(pid)
    return {
      title,
      hadStandby,
      offenders: offenders.map(({ name, title: own }, index) =>
        offenderFigures(
          own,
          attacked.calls.filter(({ path }) => path === index),
          states.get(name) ?? 'active',
          disabledAtMs.get(name),
        ),
      ),
      harmed: harmedHosts(samples).length,
      hostProcesses: pids.size,
      alone: neighbourFigures(alone),
      beside: neighbourFigures(beside),
      left,
    }
  })()
  return { ...run, survivors: survivors(pids).length }
}

function check({ title, offenders, harmed, alone, beside, left, survivors: alive }: Run, isQuick: boolean): Verdict[] {
  const claim = `killers, ${title}`
  return [
    ...neighbourVerdicts(claim, alone, beside),
    ...offenders.map((offender) => fateVerdict(offender, { claim, harmed, isAlone: offenders.length === 1, isQuick })),
    atMost('demand', `${claim}: host processes that do not leave`, left, 0, String),
    atMost('demand', `${claim}: host processes that outlive the server`, alive, 0, String),
  ]
}

function titleOf(offenders: readonly Offender[]): string {
  const [first, ...others] = offenders
  return others.length === 0 ? (first?.title ?? '') : 'all at once'
}

const OFFENDER_COLUMNS: ReadonlyArray<Column<OffenderFigures & { readonly run: string }>> = [
  { title: 'run', align: 'left', text: ({ run, title }) => (run === title ? 'alone' : run) },
  { title: 'offender', align: 'left', text: ({ title }) => title },
  { title: 'in the end', align: 'left', text: ({ state }) => state },
  {
    title: 'disabled after',
    text: ({ disabledAfterMs }) => (disabledAfterMs === undefined ? '' : milliseconds(disabledAfterMs)),
  },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
const RUN_COLUMNS: ReadonlyArray<Column<Run>> = [
  { title: 'beside', align: 'left', text: ({ title }) => title },
  { title: 'standby', align: 'left', text: ({ hadStandby }) => (hadStandby ? 'yes' : 'none') },
  { title: 'hosts harmed', text: ({ harmed }) => String(harmed) },
  { title: 'host processes', text: ({ hostProcesses }) => String(hostProcesses) },
  { title: 'left', text: ({ left, survivors: alive }) => String(left + alive) },
  ...BESIDE_COLUMNS,
]
