/** A hello function at 64 connections: Carpool against Fastify without isolation and against workerd, in interleaved rounds. */
import { benchArguments } from '../lib/arguments.ts'
import { Caller } from '../lib/caller.ts'
import { runClosedLoop } from '../lib/closed-loop.ts'
import { readEnvironment } from '../lib/environment.ts'
import { progress, publish } from '../lib/report.ts'
import { renderTable } from '../lib/table.ts'
import { times } from '../lib/quantities.ts'
import { atLeast } from '../lib/verdict.ts'
import { processColumns, processRows, rateColumns, rateRows } from './columns.ts'
import { pairedRatio, runRound, type Run } from './rounds.ts'
import { SERVER_NAMES, startHelloServer, type HelloServer } from './servers.ts'

const FASTIFY_RATIO_AIM = 0.6
const WORKERD_RATIO_AIM = 2
/** A generator that takes more than this of its core sets the pace itself. */
const GENERATOR_LIMIT = 0.95

const options = benchArguments('npm run bench:http -- [options]', {
  'rounds': { help: 'how often each server is loaded', default: '5' },
  'seconds': { help: 'how long each time', default: '5' },
  'warm-up': { help: 'seconds of load before the first round, for each server', default: '3' },
  'connections': { help: 'requests at the same time', default: '64' },
})
const roundCount = options.whole('rounds', 1)
const connections = options.whole('connections', 1)
const shape = { connections, durationMs: options.whole('seconds', 1) * 1000 }
const warmUpMs = options.whole('warm-up', 1) * 1000
const environment = readEnvironment()

await using stack = new AsyncDisposableStack()
const servers: HelloServer[] = []
for (const name of SERVER_NAMES) servers.push(stack.use(await startHelloServer(name)))
await checkAnswers(servers)
for (const { name, url } of servers) {
  progress(`warming up ${name}`)
  await runClosedLoop({ url, connections, durationMs: warmUpMs })
}
const runs: Run[] = []
for (let round = 0; round < roundCount; round++) {
  const added = await runRound(servers, round, shape)
  for (const { server, requestsPerSecond } of added)
    progress(`round ${round + 1}: ${server} ${Math.round(requestsPerSecond)} req/s`)
  runs.push(...added)
}

const style = options.markdown ? 'markdown' : 'plain'
const ratios = { fastify: pairedRatio(runs, 'carpool', 'fastify'), workerd: pairedRatio(runs, 'carpool', 'workerd') }
publish(
  {
    bench: 'http',
    title: `Hello over HTTP at ${connections} connections: ${roundCount} rounds of ${shape.durationMs / 1000} s each`,
    environment,
    blocks: [
      `Requests per second, round by round\n${renderTable(rateColumns(roundCount), rateRows(runs), style)}`,
      `CPU and memory of each process, over all rounds\n${renderTable(processColumns, processRows(runs), style)}`,
      ...generatorWarning(),
    ],
    verdicts: [
      atLeast('aim', 'Carpool against Fastify, median of the ratios within the rounds', ratios.fastify, FASTIFY_RATIO_AIM, times),
      atLeast('aim', 'Carpool against workerd, median of the ratios within the rounds', ratios.workerd, WORKERD_RATIO_AIM, times),
    ],
    results: { connections, ratios, runs },
  },
  options,
)

/** @throws Error if a server does not answer with what it is measured for */
async function checkAnswers(of: readonly HelloServer[]): Promise<void> {
  using caller = new Caller()
  for (const { name, url } of of) {
    const { status, body, error } = await caller.call(url)
    if (status !== 200 || body !== 'hello') throw new Error(`${name} answered ${error ?? status}: ${body}`)
  }
}

function generatorWarning(): string[] {
  const limited = SERVER_NAMES.filter((name) => runs.some((run) => run.server === name && run.generatorCores > GENERATOR_LIMIT))
  if (limited.length === 0) return []
  return [
    `The load generator had no CPU left with ${limited.join(', ')}: that is more than ${limited.length === 1 ? 'it' : 'they'} showed.`,
  ]
}
