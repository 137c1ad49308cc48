/**
 * Deploys revision after revision of a function that is being called at a fixed rate: no call fails, none is answered by a mix.
 */
import { join } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { Caller, failureLines, isOk, type CallResult } from '../lib/caller.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { OpenLoop } from '../lib/open-loop.ts'
import { milliseconds } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { median, percentile } from '../lib/statistics.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atMost } from '../lib/verdict.ts'
import { revisionBundle, writeRevision } from './revision.ts'
import { judge, revisionOf, type Deployment, type Judgement, type Observation } from './timeline.ts'

const NAME = 'swap'

const options = benchArguments('npm run bench:deploy -- [options]', {
  'rate': { help: 'calls per second', default: '200' },
  'deploys': { help: 'revisions deployed through the control plane', default: '100' },
  'cli-deploys': { help: 'revisions deployed with the command', default: '10' },
})
const rate = options.whole('rate', 1)
const deployCount = options.whole('deploys')
const cliDeployCount = options.whole('cli-deploys')
const environment = readEnvironment()

await using folder = await temporaryFolder()
await using server = await startCarpool({ dataDir: join(folder.path, 'data') })
using loadCaller = new Caller()
using probeCaller = new Caller()

type Via = 'command' | 'control plane'

interface MeasuredDeployment extends Deployment {
  readonly via: Via
  /** The first call after the deploy was confirmed. */
  readonly next: CallResult
}

const { url } = await server.deploy(await writeRevision(join(folder.path, 'source'), 0), NAME)
const first: Deployment = { revision: 0, sentMs: Number.NEGATIVE_INFINITY, confirmedMs: performance.now() }
const deployments: MeasuredDeployment[] = []
const calls: Array<CallResult & { readonly plannedMs: number }> = []
const load = new OpenLoop(rate, async (plannedMs) => {
  calls.push({ plannedMs, ...(await loadCaller.call(url)) })
})

load.start()
progress(`${rate} calls/s; ${cliDeployCount} deploys with the command ...`)
for (let count = 0; count < cliDeployCount; count++) await deployNext('command')
progress(`${deployCount} deploys through the control plane ...`)
for (let count = 0; count < deployCount; count++) await deployNext('control plane')
await load.stop()

async function deployNext(via: Via): Promise<void> {
  const revision = deployments.length + 1
  if (via === 'command') await writeRevision(join(folder.path, 'source'), revision)
  const sentMs = performance.now()
  await (via === 'command' ? server.deploy(join(folder.path, 'source'), NAME) : server.deployCode(revisionBundle(revision), NAME))
  const confirmedMs = performance.now()
  const next = await probeCaller.call(url)
  deployments.push({ revision, via, sentMs, confirmedMs, next })
}

const timeline = [first, ...deployments]
const judgements = Map.groupBy(calls, (call) => judge(observationOf(call), timeline))
const count = (judgement: Judgement): number => judgements.get(judgement)?.length ?? 0
const lateProbes = deployments.filter(({ revision, next }) => !isOk(next) || revisionOf(next.body) !== revision)
const complaints = [
  ...failureLines(calls),
  ...failureLines(deployments.map(({ next }) => next)),
  ...(['mixed', 'stale', 'early'] as const).flatMap((kind) =>
    (judgements.get(kind) ?? []).slice(0, 5).map(({ body }) => `${kind}: ${JSON.stringify(body.slice(0, 100))}`),
  ),
]

interface Row {
  readonly title: string
  readonly durationsMs: readonly number[]
}
const rowOf = (via: Via): Row => ({
  title: `deploy, ${via}`,
  durationsMs: deployments.filter((deployment) => deployment.via === via).map(({ sentMs, confirmedMs }) => confirmedMs - sentMs),
})
const rows: Row[] = [
  rowOf('command'),
  rowOf('control plane'),
  { title: 'first call after a deploy', durationsMs: deployments.map(({ next }) => next.durationMs) },
  { title: 'call of the load, from when it was due', durationsMs: calls.map(latencyOf) },
].filter(({ durationsMs }) => durationsMs.length > 0)
const COLUMNS: ReadonlyArray<Column<Row>> = [
  { title: 'what', align: 'left', text: ({ title }) => title },
  { title: 'count', text: ({ durationsMs }) => String(durationsMs.length) },
  { title: 'median', text: ({ durationsMs }) => milliseconds(median(durationsMs)) },
  { title: 'p99', text: ({ durationsMs }) => milliseconds(percentile(durationsMs, 99)) },
  { title: 'slowest', text: ({ durationsMs }) => milliseconds(durationsMs.reduce((a, b) => Math.max(a, b), 0)) },
]

publish(
  {
    bench: 'deploy',
    title: `Deploys under ${rate} calls/s: ${deployments.length} revisions, ${calls.length} calls`,
    environment,
    blocks: [
      renderTable(COLUMNS, rows, options.markdown ? 'markdown' : 'plain'),
      [
        'The function itself waits for 20 ms. The latest call of the load was sent',
        `${milliseconds(load.latestStartMs)} after it was due, because this process or the machine was busy.`,
      ].join(' '),
      ...(complaints.length > 0 ? [complaints.join('\n')] : []),
    ],
    verdicts: [
      atMost('demand', 'failed calls', count('failed'), 0, String),
      atMost('demand', 'answers that mix revisions', count('mixed'), 0, String),
      atMost('demand', 'answers by a revision that had been replaced before the call', count('stale'), 0, String),
      atMost('demand', 'answers by a revision before it was sent', count('early'), 0, String),
      atMost('demand', 'first calls after a deploy that the new revision did not answer', lateProbes.length, 0, String),
    ],
    results: { rate, complaints, deployments, calls: { count: calls.length, latenciesMs: calls.map(latencyOf) } },
  },
  options,
)

function observationOf(call: CallResult): Observation {
  const { startMs, durationMs, body } = call
  return { startMs, endMs: startMs + durationMs, body: isOk(call) ? body : undefined }
}

function latencyOf({ plannedMs, startMs, durationMs }: (typeof calls)[number]): number {
  return startMs + durationMs - plannedMs
}
