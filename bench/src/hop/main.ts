/** What a warm hello costs: CPU time of each stage of its way, and of each thread. */
import { resolve } from 'node:path'
import { benchArguments } from '../lib/arguments.ts'
import { commitOf, readEnvironment } from '../lib/environment.ts'
import { progress, publish } from '../lib/report.ts'
import { repositoryPath } from '../lib/repository.ts'
import { renderTable } from '../lib/table.ts'
import { atMost } from '../lib/verdict.ts'
import { attribute, type Attribution } from './attribution.ts'
import {
  costColumns,
  costRows,
  functionColumns,
  functionRows,
  rateColumns,
  threadColumns,
  threadRows,
  type CheckoutResult,
} from './columns.ts'
import { budgetSums, costsOf } from './costs.ts'
import { startHopServer, takeProfiles, type HopRound, type HopServer } from './measure.ts'
import { SourceFiles } from './source-files.ts'
import { BUDGETS, STAGES, type BudgetName, type ProcessName } from './stages.ts'
import { mediansOf } from './totals.ts'

const options = benchArguments('npm run bench:hop -- [options]', {
  'checkout': { help: 'root folder of another checkout, with its dependencies, that is measured too', default: '' },
  'connections': { help: 'requests at the same time', default: '64' },
  'rounds': { help: 'how often each checkout is loaded', default: '3' },
  'seconds': { help: 'how long each time, and how long it is profiled', default: '5' },
  'warm-up': { help: 'seconds of load before the first round, and before the profile', default: '4' },
  'functions': { help: 'how many functions to list of each profile, by their own time', default: '0' },
})
const connections = options.whole('connections', 1)
const roundCount = options.whole('rounds', 1)
const shape = { connections, durationMs: options.whole('seconds', 1) * 1000 }
const warmUp = { connections, durationMs: options.whole('warm-up', 1) * 1000 }
const functionCount = options.whole('functions')
const style = options.markdown ? 'markdown' : 'plain'
const environment = readEnvironment()
const checkouts = [
  { name: 'carpool', folder: repositoryPath('') },
  ...(options.text('checkout') === '' ? [] : [{ name: 'before', folder: resolve(options.text('checkout')) }]),
]

const rounds = await measureRounds()
const measured: Array<{ readonly result: CheckoutResult; readonly profiles: Record<ProcessName, Attribution> }> = []
for (const [index, { name, folder }] of checkouts.entries()) {
  progress(`profiling ${name}`)
  const profiles = await attributedProfiles(folder)
  const own = rounds.map((round) => round[index]!)
  const threads = mediansOf(own.map((round) => round.threads))
  const rates = own.map(({ requestsPerSecond }) => requestsPerSecond)
  measured.push({ result: { name, commit: commitOf(folder), rates, threads, costs: costsOf(threads, profiles) }, profiles })
}

const results = measured.map(({ result }) => result)
const sums = budgetSums(results[0]?.costs ?? [])
const micros = (value: number): string => `${value.toFixed(1)} µs`
publish(
  {
    bench: 'hop',
    title: `What a warm hello costs, over ${connections} connections: ${roundCount} rounds of ${shape.durationMs / 1000} s each`,
    environment,
    blocks: [
      renderTable(rateColumns, results, style),
      `CPU time of a call, stage by stage\n${renderTable(costColumns(results), costRows(results), style)}`,
      `Threads, for one call\n${renderTable(threadColumns(results), threadRows(results), style)}`,
      ...(functionCount === 0 ? [] : measured.map(functionBlock)),
    ],
    verdicts: (Object.keys(BUDGETS) as BudgetName[]).map((name) =>
      atMost('aim', `CPU time of a call: ${name}`, sums[name], BUDGETS[name], micros),
    ),
    results: { connections, budgets: BUDGETS, checkouts: results, rounds },
  },
  options,
)

/**
 * Loads the checkouts in turns, each with a server that stays; who is first alternates. Of each round, what each checkout used.
 */
async function measureRounds(): Promise<HopRound[][]> {
  await using stack = new AsyncDisposableStack()
  const servers: HopServer[] = []
  for (const { name, folder } of checkouts) {
    progress(`warming up ${name}`)
    servers.push(stack.use(await startHopServer(folder, warmUp)))
  }
  const measured: HopRound[][] = []
  for (let round = 0; round < roundCount; round++) {
    const results: HopRound[] = []
    const order = servers.map((_, index) => (index + round) % servers.length)
    for (const index of order) {
      const result = await servers[index]!.load(shape)
      progress(`round ${round + 1}: ${checkouts[index]?.name} ${Math.round(result.requestsPerSecond)} req/s`)
      results[index] = result
    }
    measured.push(results)
  }
  return measured
}

async function attributedProfiles(folder: string): Promise<Record<ProcessName, Attribution>> {
  const { server, host } = await takeProfiles(folder, warmUp, shape)
  const serverFiles = new SourceFiles(folder, server.sources)
  const hostFiles = new SourceFiles(folder, host.sources)
  return {
    server: attribute(server, STAGES.server, (frame) => serverFiles.fileOf(frame)),
    host: attribute(host, STAGES.host, (frame) => hostFiles.fileOf(frame)),
  }
}

function functionBlock({ result, profiles }: (typeof measured)[number]): string {
  const rows = functionRows(result.threads, profiles, functionCount)
  return `Functions of ${result.name} by their own time\n${renderTable(functionColumns, rows, style)}`
}
