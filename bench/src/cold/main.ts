/** First answer of a function that was never called, of one whose isolate was evicted, and of a warm one. */
import { join } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { Caller } from '../lib/caller.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { milliseconds } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { median, percentile } from '../lib/statistics.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atMost } from '../lib/verdict.ts'
import { APP_NAMES, APPS, folderOf, writeCountingFunction } from './functions.ts'
import type { Sample, StartKind } from './samples.ts'
import { evictedAndWarmCalls, firstCalls, killHost } from './scenario.ts'

/** Fewer than functions, so that calling them in turn evicts each before it is called again. */
const MAX_ISOLATES = 2

const options = benchArguments('npm run bench:cold -- [options]', {
  app: { help: `what each function is: ${APP_NAMES.join(', ')}`, default: 'hello' },
  functions: { help: 'how many functions are deployed and called in turn', default: '30' },
  rounds: { help: 'how often each is called after it was evicted', default: '10' },
  restarts: { help: 'how often the server is started again for first calls, and how often a host is killed', default: '5' },
})
const functionCount = options.whole('functions', MAX_ISOLATES + 1)
const rounds = options.whole('rounds', 1)
const restarts = options.whole('restarts', 1)
const appName = options.word('app', APP_NAMES)
const app = APPS[appName]
const environment = readEnvironment()

await using folder = await temporaryFolder()
const settings = { dataDir: join(folder.path, 'data'), flags: ['--max-isolates', String(MAX_ISOLATES), '--max-hosts', '1'] }
const urls = await deployFunctions()
const samples: Sample[] = []

for (let restart = 0; restart < restarts; restart++) {
  progress(`first calls after start ${restart + 1} of ${restarts}`)
  await using server = await startCarpool(settings)
  using caller = new Caller()
  samples.push(...(await firstCalls(caller, urlsAt(server.url))))
}
{
  await using server = await startCarpool(settings)
  using caller = new Caller()
  const here = urlsAt(server.url)
  progress('warming up')
  for (const url of here) await caller.call(url)
  progress(`${rounds} rounds of evicted and warm calls`)
  await evictedAndWarmCalls(caller, here, 1)
  samples.push(...(await evictedAndWarmCalls(caller, here, rounds)))
}
const replacements: number[] = []
{
  await using server = await startCarpool(settings)
  using caller = new Caller()
  const [url = ''] = urlsAt(server.url)
  for (let restart = 0; restart < restarts; restart++) {
    progress(`call while a killed host is replaced ${restart + 1} of ${restarts}`)
    await caller.call(url)
    await killHost(server)
    const { status, body, durationMs } = await caller.call(url)
    if (status !== 200) throw new Error(`The call during the replacement answered ${status}: ${body}`)
    replacements.push(durationMs)
  }
}

const KINDS: ReadonlyArray<readonly [StartKind, string]> = [
  ['host-cold', 'first call of all after a start of the server'],
  ['never-called', 'never called since the start of the server'],
  ['evicted', 'isolate evicted'],
  ['warm', 'warm'],
]
interface Row {
  readonly title: string
  readonly durationsMs: readonly number[]
}
const durationsOf = (kind: StartKind): number[] =>
  samples.filter((each) => each.kind === kind).map(({ durationMs }) => durationMs)
const rows: Row[] = [
  { title: 'host process killed, until its replacement answers', durationsMs: replacements },
  ...KINDS.map(([kind, title]) => ({ title, durationsMs: durationsOf(kind) })),
]
const warmMs = median(durationsOf('warm'))
const COLUMNS: ReadonlyArray<Column<Row>> = [
  { title: 'the call finds', align: 'left', text: ({ title }) => title },
  { title: 'calls', text: ({ durationsMs }) => String(durationsMs.length) },
  { title: 'median', text: ({ durationsMs }) => milliseconds(median(durationsMs)) },
  { title: 'p95', text: ({ durationsMs }) => milliseconds(percentile(durationsMs, 95)) },
  { title: 'slowest', text: ({ durationsMs }) => milliseconds(Math.max(...durationsMs)) },
  { title: 'over warm', text: ({ durationsMs }) => milliseconds(median(durationsMs) - warmMs) },
]

publish(
  {
    bench: 'cold',
    title: `First answers: ${functionCount} functions (${appName}), at most ${MAX_ISOLATES} isolates`,
    environment,
    blocks: [
      renderTable(COLUMNS, rows, options.markdown ? 'markdown' : 'plain'),
      'Every call was checked to have found what its row says: only a new isolate counts its own calls from 1.',
    ],
    verdicts: [
      atMost(
        'aim',
        'an evicted function answers, over a warm one (medians)',
        median(durationsOf('evicted')) - warmMs,
        app.aimMs,
        milliseconds,
      ),
    ],
    results: { appName, functionCount, maxIsolates: MAX_ISOLATES, replacements, samples },
  },
  options,
)

function functionName(index: number): string {
  return `cold-${index}`
}

function urlsAt(origin: string): string[] {
  return urls.map((path) => origin + path)
}

/** @returns the paths of the functions */
async function deployFunctions(): Promise<string[]> {
  await using server = await startCarpool(settings)
  progress(`deploying ${functionCount} functions`)
  const parent = folderOf(app, folder.path)
  const paths: string[] = []
  for (let index = 0; index < functionCount; index++) {
    const name = functionName(index)
    await server.deploy(await writeCountingFunction(parent, name, app), name)
    paths.push(`/${name}/`)
  }
  return paths
}
