/**
 * WebSockets that echo: Carpool against plain Node.js with ws, in interleaved rounds, with many clients that are open and do
 * nothing.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { benchArguments } from '../lib/arguments.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer } from '../lib/child-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { watchProcesses } from '../lib/process-watch.ts'
import { kibibytes } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { median, percentile } from '../lib/statistics.ts'
import { untilStandby } from '../lib/standby.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atLeast, atMost } from '../lib/verdict.ts'
import { closeClients, connectClients, echo } from './clients.ts'

/** Between its rounds a watched server is looked at only so often, in ms. */
const LOOK_MS = 500
/** How long a server gets to come to rest, in ms. */
const SETTLE_MS = 2_000
const MAX_CPU_AT_REST = 0.01
const MIN_RATIO = 0.3

const options = benchArguments('npm run bench:web-sockets -- [options]', {
  clients: { help: 'clients that are connected', default: '2000' },
  active: { help: 'of these, clients that send at the same time', default: '200' },
  bytes: { help: 'length of a message', default: '64' },
  rounds: { help: 'how often each server is loaded', default: '3' },
  seconds: { help: 'how long each time', default: '4' },
  rest: { help: 'seconds for which nothing is sent, to see what that costs', default: '5' },
})
const clients = options.whole('clients', 1)
const active = options.whole('active', 1)
const rounds = options.whole('rounds', 1)
const durationMs = options.whole('seconds', 1) * 1000
const restMs = options.whole('rest', 1) * 1000
const text = 'x'.repeat(options.whole('bytes', 1))
const environment = readEnvironment()

interface Server {
  readonly name: 'carpool' | 'plain ws'
  readonly pid: number
  readonly url: string
}

interface Round {
  readonly server: Server['name']
  readonly round: number
  readonly messagesPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** What each client that is connected takes, in bytes. */
  readonly bytesPerClient: number
  /** Of one core, while all are connected and nothing is sent. */
  readonly cpuAtRest: number
  /** The same while nobody is connected. */
  readonly cpuAlone: number
}

async function memoryOf(pid: number): Promise<number> {
  const watch = await watchProcesses([pid], LOOK_MS)
  return (await watch.stop()).peakBytes
}

async function runRound({ name, pid, url }: Server, round: number): Promise<Round> {
  const alone = await watchProcesses([pid], restMs)
  await sleep(restMs)
  const { cpuSeconds: aloneCpuSeconds } = await alone.stop()
  const before = await memoryOf(pid)
  const sockets = await connectClients(url, clients)
  await sleep(SETTLE_MS)
  const after = await memoryOf(pid)
  const rest = await watchProcesses([pid], restMs)
  await sleep(restMs)
  const { cpuSeconds } = await rest.stop()
  const { messagesPerSecond, latencies } = await echo(sockets.slice(0, active), text, durationMs)
  await closeClients(sockets)
  await sleep(SETTLE_MS)
  const result = {
    server: name,
    round,
    messagesPerSecond,
    p50Ms: percentile(latencies, 50),
    p99Ms: percentile(latencies, 99),
    bytesPerClient: (after - before) / clients,
    cpuAtRest: cpuSeconds / (restMs / 1000),
    cpuAlone: aloneCpuSeconds / (restMs / 1000),
  }
  progress(`round ${round + 1}: ${name} ${Math.round(messagesPerSecond)} msg/s`)
  return result
}

await using folder = await temporaryFolder()
await using carpool = await startCarpool({ dataDir: join(folder.path, 'data') })
const deployed = await carpool.deploy(fileURLToPath(new URL('echo.js', import.meta.url)), 'echo')
await untilStandby(carpool)
await using plain = await startChildServer({
  command: process.execPath,
  args: [fileURLToPath(new URL('plain-server.js', import.meta.url))],
  parseReady: (line) => parseJsonLine<{ port: number }>(line)?.port,
})
const servers: Server[] = [
  { name: 'carpool', pid: carpool.pid, url: deployed.url.replace(/^http/, 'ws') },
  { name: 'plain ws', pid: plain.pid, url: `ws://127.0.0.1:${plain.ready}/` },
]
// What is compiled and allocated once is no cost of the clients.
for (const { url } of servers) {
  const sockets = await connectClients(url, Math.min(clients, 200))
  await echo(sockets, text, 1_000)
  await closeClients(sockets)
}
await sleep(SETTLE_MS)

const measured: Round[] = []
for (let round = 0; round < rounds; round++) for (const server of servers) measured.push(await runRound(server, round))

const of = (name: Server['name'], value: (round: Round) => number): number =>
  median(measured.filter(({ server }) => server === name).map(value))
const ratio = median(
  Array.from({ length: rounds }, (_, round) => {
    const rate = (name: Server['name']): number =>
      measured.find((one) => one.server === name && one.round === round)!.messagesPerSecond
    return rate('carpool') / rate('plain ws')
  }),
)
const share = (value: number): string => `${(value * 100).toFixed(2)} %`
const COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'round', text: ({ round }) => String(round + 1) },
  { title: 'server', text: ({ server }) => server },
  { title: 'msg/s', text: ({ messagesPerSecond }) => String(Math.round(messagesPerSecond)) },
  { title: 'p50', text: ({ p50Ms }) => `${p50Ms.toFixed(2)} ms` },
  { title: 'p99', text: ({ p99Ms }) => `${p99Ms.toFixed(2)} ms` },
  { title: 'memory per client', text: ({ bytesPerClient }) => kibibytes(bytesPerClient) },
  { title: 'CPU at rest', text: ({ cpuAtRest }) => share(cpuAtRest) },
  { title: 'with no clients', text: ({ cpuAlone }) => share(cpuAlone) },
]
publish(
  {
    bench: 'web-sockets',
    title: `Echo over WebSockets: ${clients} clients, of which ${active} send ${text.length} bytes each at the same time`,
    environment,
    blocks: [renderTable(COLUMNS, measured, options.markdown ? 'markdown' : 'plain')],
    verdicts: [
      atLeast('aim', 'rate against plain ws', ratio, MIN_RATIO, (value) => value.toFixed(2)),
      atMost(
        'aim',
        'CPU at rest',
        of('carpool', ({ cpuAtRest }) => cpuAtRest),
        MAX_CPU_AT_REST,
        share,
      ),
    ],
    results: { clients, active, bytes: text.length, ratio, rounds: measured },
  },
  options,
)
