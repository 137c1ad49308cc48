/**
 * 150 functions in one host, called by 1 to 150 clients, each of its own function: what is dropped, and what a function costs
 * in memory.
 */
import { join } from 'node:path'
import { megabytes, milliseconds } from '../../lib/quantities.ts'
import { progress } from '../../lib/report.ts'
import { renderTable, type Column } from '../../lib/table.ts'
import { temporaryFolder } from '../../lib/temporary-folder.ts'
import { atMost } from '../../lib/verdict.ts'
import { startBenchServer, type BenchServer } from '../../lib/bench-server.ts'
import { calcBundle, calcPath } from '../functions.ts'
import { callsThat, distributionOf, endLine, goodPerSecond, latencyMs } from '../../lib/load/call-summary.ts'
import { runLoad } from '../../lib/load/generator.ts'
import type { Measured, ScenarioOptions } from '../../lib/scenario.ts'
import { servingHosts } from '../../lib/watch/fleet-sample.ts'
import { proportionalBytes } from '../../lib/watch/host-processes.ts'

const LEVEL = 3
const STEPS: readonly number[] = [1, 2, 5, 10, 25, 50, 75, 100, 125, 150]
const QUICK_STEPS: readonly number[] = [1, 10, 25]
const CALLS_EACH = 30
const CLIENT_TIMEOUT_MS = 1_500
/** One host, so that the memory is that of its functions; and enough isolates for all of them. */
const FLAGS: readonly string[] = ['--max-hosts', '1']

interface Step {
  readonly clients: number
  readonly calls: number
  readonly dropped: number
  readonly callsPerSecond: number
  readonly meanMs: number
  readonly p99Ms: number
  /** Of the host, after the step. */
  readonly hostBytes: number
  /** For each function that was called for the first time in this step. */
  readonly bytesPerFunction: number
  readonly ends: string
}

export async function measureUtilization({ isQuick, style }: ScenarioOptions): Promise<Measured> {
  const steps = isQuick ? QUICK_STEPS : STEPS
  await using folder = await temporaryFolder()
  const dataDir = join(folder.path, 'data')
  await deployAll(dataDir, Math.max(...steps))
  // Deploying warms functions up: in a server that was started again, none is loaded.
  await using server = await startBenchServer({ flags: FLAGS, dataDir })
  const emptyBytes = await hostBytes(server)
  const measured: Step[] = []
  for (const clients of steps) {
    progress(`utilization: ${clients} clients`)
    const before = measured.at(-1) ?? { clients: 0, hostBytes: emptyBytes }
    measured.push(await runStep(server, clients, before))
  }
  const last = measured.at(-1)
  const perFunction = last === undefined ? Number.NaN : (last.hostBytes - emptyBytes) / last.clients
  return {
    blocks: [
      `Each client calls a function of its own (calc level ${LEVEL}, each with code of its own) ${CALLS_EACH} times and leaves after ${CLIENT_TIMEOUT_MS} ms; ${FLAGS.join(' ')}\n${renderTable(COLUMNS, measured, style)}`,
      `The host alone has ${megabytes(emptyBytes)}; over all steps a function adds ${megabytes(perFunction)}.`,
    ],
    verdicts: [
      atMost(
        'demand',
        'utilization: dropped calls',
        measured.reduce((sum, { dropped }) => sum + dropped, 0),
        0,
        String,
      ),
    ],
    results: { emptyBytes, perFunctionBytes: perFunction, steps: measured },
  }
}

async function deployAll(dataDir: string, count: number): Promise<void> {
  await using server = await startBenchServer({ flags: FLAGS, dataDir })
  progress(`utilization: deploying ${count} functions`)
  for (let index = 0; index < count; index++) await server.deployBundle(functionName(index), calcBundle(functionName(index)))
}

async function runStep(
  server: BenchServer,
  clients: number,
  before: { readonly clients: number; readonly hostBytes: number },
): Promise<Step> {
  const { calls, beganMs, endedMs } = await runLoad({
    origin: server.carpool.url,
    paths: Array.from({ length: clients }, (_, index) => calcPath(functionName(index), LEVEL)),
    load: { kind: 'closed', clients, callsEach: CALLS_EACH },
    leaveAfterMs: CLIENT_TIMEOUT_MS,
  })
  const latencies = callsThat('good', calls).map(latencyMs)
  const bytes = await hostBytes(server)
  return {
    clients,
    calls: calls.length,
    dropped: calls.length - latencies.length,
    callsPerSecond: goodPerSecond(calls, beganMs, endedMs),
    meanMs: latencies.reduce((sum, ms) => sum + ms, 0) / latencies.length,
    p99Ms: distributionOf(latencies).p99 ?? Number.NaN,
    hostBytes: bytes,
    bytesPerFunction: (bytes - before.hostBytes) / (clients - before.clients),
    ends: endLine(calls),
  }
}

async function hostBytes(server: BenchServer): Promise<number> {
  return servingHosts(await server.status()).reduce(
    (sum, { pid, memoryBytes }) => sum + (proportionalBytes(pid) ?? memoryBytes),
    0,
  )
}

function functionName(index: number): string {
  return `calc-${index}`
}

const COLUMNS: ReadonlyArray<Column<Step>> = [
  { title: 'clients', text: ({ clients }) => String(clients) },
  { title: 'calls', text: ({ calls }) => String(calls) },
  { title: 'dropped', text: ({ dropped }) => String(dropped) },
  { title: 'calls/s', text: ({ callsPerSecond }) => callsPerSecond.toFixed(0) },
  { title: 'mean', text: ({ meanMs }) => milliseconds(meanMs) },
  { title: 'p99', text: ({ p99Ms }) => milliseconds(p99Ms) },
  { title: 'memory of the host', text: ({ hostBytes }) => megabytes(hostBytes) },
  { title: 'for each new function', text: ({ bytesPerFunction }) => `${(bytesPerFunction / 1e6).toFixed(2)} MB` },
  { title: 'answers', align: 'left', text: ({ ends }) => ends },
]
