/** A thousand calls at once that sleep for a second: waiting takes no process and next to no CPU. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { benchArguments } from '../lib/arguments.ts'
import { Caller, failureLines, isOk } from '../lib/caller.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { watchProcesses } from '../lib/process-watch.ts'
import { cpuSeconds, megabytes, seconds } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { percentile } from '../lib/statistics.ts'
import { splitHosts, untilStandby } from '../lib/standby.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import type { TreeUsage } from '../lib/tree-account.ts'
import { atMost } from '../lib/verdict.ts'

const ALL_ANSWERED_MS = 2000

const options = benchArguments('npm run bench:sleep -- [options]', {
  calls: { help: 'calls at once', default: '1000' },
  rounds: { help: 'how often, each time with a server of its own', default: '3' },
})
const calls = options.whole('calls', 1)
const rounds = options.whole('rounds', 1)
const environment = readEnvironment()

interface Round {
  readonly failures: number
  readonly failureLines: readonly string[]
  readonly p50Ms: number
  /** From the first call sent to the last answer. */
  readonly allAnsweredMs: number
  /** Every host process that was seen from before the first call until after the last answer, but for the standby. */
  readonly hosts: number
  /** Host processes that were kept started, and ran nothing. */
  readonly standbyHosts: number
  readonly usage: TreeUsage
  readonly clientCpuSeconds: number
}

async function runRound(): Promise<Round> {
  await using folder = await temporaryFolder()
  await using server = await startCarpool({ dataDir: join(folder.path, 'data') })
  const { url } = await server.deploy(fileURLToPath(new URL('sleeper.js', import.meta.url)), 'sleeper')
  await untilStandby(server)
  const watch = await watchProcesses([server.pid])
  using caller = new Caller()
  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  const results = await caller.callAtOnce(url, calls)
  const allAnsweredMs = performance.now() - startMs
  const { user, system } = process.cpuUsage(startCpu)
  const usage = await watch.stop()
  const { serving, standby } = await splitHosts(usage, server)
  return {
    failures: results.filter((result) => !isOk(result) || result.body !== 'slept').length,
    failureLines: failureLines(results),
    p50Ms: percentile(
      results.map(({ durationMs }) => durationMs),
      50,
    ),
    allAnsweredMs,
    hosts: serving.length,
    standbyHosts: standby.length,
    usage,
    clientCpuSeconds: (user + system) / 1e6,
  }
}

const measured: Round[] = []
for (let round = 0; round < rounds; round++) {
  progress(`round ${round + 1} of ${rounds}: ${calls} calls at once`)
  const result = await runRound()
  for (const line of result.failureLines) progress(`  failed: ${line}`)
  measured.push(result)
}

const COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'round', text: (round) => String(measured.indexOf(round) + 1) },
  { title: 'failed', text: ({ failures }) => String(failures) },
  { title: 'p50', text: ({ p50Ms }) => seconds(p50Ms) },
  { title: 'all answered', text: ({ allAnsweredMs }) => seconds(allAnsweredMs) },
  { title: 'host processes', text: ({ hosts }) => String(hosts) },
  { title: 'standby', text: ({ standbyHosts }) => String(standbyHosts) },
  { title: 'CPU of server and hosts', text: ({ usage }) => cpuSeconds(usage.cpuSeconds) },
  { title: 'peak memory', text: ({ usage }) => megabytes(usage.peakBytes) },
  { title: 'CPU of the client', text: ({ clientCpuSeconds }) => cpuSeconds(clientCpuSeconds) },
]
const worst = (value: (round: Round) => number): number => Math.max(...measured.map(value))

publish(
  {
    bench: 'sleep',
    title: `${calls} calls at once that sleep for 1 s`,
    environment,
    blocks: [
      renderTable(COLUMNS, measured, options.markdown ? 'markdown' : 'plain'),
      'Each call opens a connection of its own. Standby: started, to take over at once, and has run nothing. Nothing was called before in that server but by the deploy itself.',
    ],
    verdicts: [
      atMost(
        'demand',
        'failed calls',
        worst(({ failures }) => failures),
        0,
        String,
      ),
      atMost(
        'demand',
        'host processes that took calls, from start to end',
        worst(({ hosts }) => hosts),
        1,
        String,
      ),
      atMost(
        'demand',
        'slowest round until all are answered',
        worst(({ allAnsweredMs }) => allAnsweredMs),
        ALL_ANSWERED_MS,
        seconds,
      ),
    ],
    results: { calls, rounds: measured },
  },
  options,
)
