/** 200 calls at once on a pool of 10 connections: what it takes, and what a database has of it. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { Caller } from '../lib/caller.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer } from '../lib/child-server.ts'
import { runClosedLoop } from '../lib/closed-loop.ts'
import { mostConnectionsTo } from '../lib/databases/connections.ts'
import { missing, startDatabase } from '../lib/databases/database.ts'
import { POSTGRES } from '../lib/databases/kinds.ts'
import { readEnvironment } from '../lib/environment.ts'
import { installPackages } from '../lib/installed-packages.ts'
import { milliseconds, times } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { median } from '../lib/statistics.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atMost } from '../lib/verdict.ts'

const POOL = 10
const WARM_MS = 2_000

const options = benchArguments('npm run bench:databases -- [options]', {
  calls: { help: 'calls at once', default: '200' },
  seconds: { help: 'how long each is measured in each round', default: '10' },
  rounds: { help: 'pairs of Carpool and plain Node.js, in turns', default: '5' },
})
const calls = options.whole('calls', 1)
const durationMs = options.whole('seconds', 1) * 1000
const rounds = options.whole('rounds', 1)
const absent = missing(POSTGRES)
if (absent !== false) {
  progress(absent)
  process.exit(2)
}
const environment = readEnvironment()

interface Measured {
  readonly way: 'Carpool' | 'plain Node.js' | 'a process per call'
  readonly round: number
  readonly callsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly connections: number
}

await using database = await startDatabase(POSTGRES)
await using folder = await temporaryFolder()
const code = join(installPackages('test/databases'), 'bench')
mkdirSync(code, { recursive: true })
for (const file of ['pool.mjs', 'plain-node.mjs', 'process-per-call.mjs'])
  cpSync(join(import.meta.dirname, file), join(code, file))
// A function has no environment of its own making here.
const entry = join(code, 'function.mjs')
writeFileSync(entry, readFileSync(join(code, 'pool.mjs'), 'utf8').replace('process.env.DATABASE_PORT', `${database.port}`))

const startNode = (file: string) =>
  startChildServer({
    command: process.execPath,
    args: [join(code, file)],
    env: { ...process.env, DATABASE_PORT: `${database.port}` },
    parseReady: (line) => parseJsonLine<{ url: string }>(line)?.url,
  })

async function measure(way: Measured['way'], round: number, url: string): Promise<Measured> {
  progress(`round ${round + 1} of ${rounds}: ${way}`)
  await runClosedLoop({ url, connections: calls, durationMs: WARM_MS })
  const [load, connections] = await mostConnectionsTo(database.port, () => runClosedLoop({ url, connections: calls, durationMs }))
  const { requestsPerSecond, p50Ms, p99Ms } = load
  return { way, round, callsPerSecond: requestsPerSecond, p50Ms, p99Ms, connections }
}

const measured: Measured[] = []
for (let round = 0; round < rounds; round++) {
  const carpool = async (): Promise<void> => {
    await using server = await startCarpool({
      dataDir: join(folder.path, `data-${round}`),
      flags: ['--allow-egress', '127.0.0.1'],
    })
    const { url } = await server.deploy(entry, 'pool')
    measured.push(await measure('Carpool', round, url))
  }
  const plain = async (): Promise<void> => {
    await using server = await startNode('plain-node.mjs')
    measured.push(await measure('plain Node.js', round, server.ready))
  }
  for (const run of round % 2 === 0 ? [carpool, plain] : [plain, carpool]) await run()
}
{
  // Once: its processes take gigabytes, and half a minute to start.
  await using server = await startNode('process-per-call.mjs')
  using caller = new Caller()
  await caller.callAtOnce(server.ready, calls)
  measured.push(await measure('a process per call', 0, server.ready))
}

const COLUMNS: ReadonlyArray<Column<Measured>> = [
  { title: '', text: ({ way }) => way },
  { title: 'round', text: ({ round }) => String(round + 1) },
  { title: 'calls/s', text: ({ callsPerSecond }) => callsPerSecond.toFixed(0) },
  { title: 'p50', text: ({ p50Ms }) => milliseconds(p50Ms) },
  { title: 'p99', text: ({ p99Ms }) => milliseconds(p99Ms) },
  { title: 'connections at the database', text: ({ connections }) => String(connections) },
]
const of = (way: Measured['way'], value: (one: Measured) => number): number[] =>
  measured.filter((one) => one.way === way).map(value)
/** Of each pair, how many times as long Carpool takes; the median of all pairs. */
const ratio = (value: (one: Measured) => number): number => {
  const plain = of('plain Node.js', value)
  return median(of('Carpool', value).map((own, round) => own / plain[round]!))
}
const ratios = { p50: ratio(({ p50Ms }) => p50Ms), p99: ratio(({ p99Ms }) => p99Ms) }

publish(
  {
    bench: 'databases',
    title: `${calls} calls at once, each a query of PostgreSQL by a pool of ${POOL}`,
    environment,
    blocks: [
      renderTable(COLUMNS, measured, options.markdown ? 'markdown' : 'plain'),
      `Carpool takes ${times(ratios.p50)} the time of plain Node.js at the median, ${times(ratios.p99)} at p99 (medians of ${rounds} pairs).`,
    ],
    verdicts: [
      atMost(
        'demand',
        'connections of Carpool at the database',
        Math.max(...of('Carpool', ({ connections }) => connections)),
        POOL,
        String,
      ),
    ],
    results: { calls, rounds, ratios, measured },
  },
  options,
)
