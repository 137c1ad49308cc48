/** Throughput of small functions over HTTP: Carpool against other servers, in interleaved rounds. */
import { resolve } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { runClosedLoop } from '../lib/closed-loop.ts'
import { commitOf, readEnvironment } from '../lib/environment.ts'
import { progress, publish } from '../lib/report.ts'
import { renderTable } from '../lib/table.ts'
import { checkRatios, resultsByConnections } from './checks.ts'
import { processColumns, processRows, rateColumns, rateRows, ratioColumns } from './columns.ts'
import { requestOf, runRound, type Run } from './rounds.ts'
import { serversFor, startServer, type BenchedServer } from './servers.ts'
import { WORKLOAD, WORKLOADS } from './workloads.ts'

/** A generator that takes more than this of its core sets the pace itself. */
const GENERATOR_LIMIT = 0.95

const options = benchArguments('npm run bench:http -- [options]', {
  'workload': { help: WORKLOADS.join(', '), default: 'hello' },
  'connections': { help: 'requests at the same time; several between commas', default: '64' },
  'rounds': { help: 'how often each server is loaded', default: '5' },
  'seconds': { help: 'how long each time', default: '5' },
  'warm-up': { help: 'seconds of load before the first round, for each server', default: '3' },
  'checkout': { help: 'root folder of another checkout, with its dependencies, whose Carpool is loaded too', default: '' },
})
const workloadName = options.word('workload', WORKLOADS)
const workload = WORKLOAD[workloadName]
const connectionCounts = options.wholes('connections')
const roundCount = options.whole('rounds', 1)
const durationMs = options.whole('seconds', 1) * 1000
const warmUpMs = options.whole('warm-up', 1) * 1000
const checkout = options.text('checkout') === '' ? undefined : resolve(options.text('checkout'))
const environment = readEnvironment()

await using stack = new AsyncDisposableStack()
const servers: BenchedServer[] = []
for (const name of serversFor({ workload: workloadName, checkout })) {
  servers.push(stack.use(await startServer(name, { workload: workloadName, checkout })))
}
for (const server of servers) await checkAnswer(server)
for (const { name, url } of servers) {
  progress(`warming up ${name}`)
  await runClosedLoop({ url, ...requestOf(workload), connections: connectionCounts[0] ?? 1, durationMs: warmUpMs })
}
const runs: Run[] = []
for (let round = 0; round < roundCount; round++) {
  for (const connections of connectionCounts) {
    const added = await runRound(servers, round, { workload, connections, durationMs })
    for (const { server, requestsPerSecond } of added) {
      progress(`round ${round + 1}, ${connections} at a time: ${server} ${Math.round(requestsPerSecond)} req/s`)
    }
    runs.push(...added)
  }
}

const style = options.markdown ? 'markdown' : 'plain'
const results = resultsByConnections(runs)
const [first, ...others] = results
publish(
  {
    bench: workloadName === 'hello' ? 'http' : `http-${workloadName}`,
    title: `${workloadName} over HTTP, ${connectionCounts.join(', ')} at a time: ${roundCount} rounds of ${durationMs / 1000} s`,
    environment,
    blocks: [
      ...results.map(
        ({ connections, runs }) =>
          `Requests per second over ${connections} connections, round by round\n` +
          renderTable(rateColumns(roundCount), rateRows(runs), style),
      ),
      `Carpool's rate against the others', medians within the rounds\n${renderTable(ratioColumns(results), results, style)}`,
      `CPU and memory of each process, over all rounds\n${renderTable(processColumns, processRows(runs), style)}`,
      ...generatorWarning(),
      ...(checkout === undefined ? [] : [`carpool-before is commit ${commitOf(checkout)}.`]),
    ],
    verdicts: checkRatios(results, workloadName),
    // What was measured over the usual connections stands where it has always been.
    results: { workload: workloadName, ...first, otherConnections: others },
  },
  options,
)

/** @throws Error if a server does not answer with what it is measured for */
async function checkAnswer({ name, url }: BenchedServer): Promise<void> {
  const response = await fetch(url, requestOf(workload))
  const body = await response.text()
  if (response.status !== 200 || body !== workload.answer) throw new Error(`${name} answered ${response.status}: ${body}`)
}

function generatorWarning(): string[] {
  const limited = [...new Set(runs.filter(({ generatorCores }) => generatorCores > GENERATOR_LIMIT).map(({ server }) => server))]
  if (limited.length === 0) return []
  return [
    `The load generator had no CPU left with ${limited.join(', ')}, ` +
      `which could have been faster than ${limited.length === 1 ? 'it' : 'they'} showed.`,
  ]
}
