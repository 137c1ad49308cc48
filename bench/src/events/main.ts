/** Server-sent events: how long one takes to its client, and what thousands of clients cost to which nothing is sent. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { benchArguments } from '../lib/arguments.ts'
import { isCarpoolHost, startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer } from '../lib/child-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { watchProcesses } from '../lib/process-watch.ts'
import { kibibytes, milliseconds } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { median, percentile } from '../lib/statistics.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atMost } from '../lib/verdict.ts'
import { connectIdle, timeEvents } from './clients.ts'

/** A server at rest is looked at only so often, in ms. */
const LOOK_MS = 1_000
/** How long a server gets to come to rest, in ms. */
const SETTLE_MS = 10_000
/** The same after thousands have connected: V8 collects what that has left in passes, up to half a minute later. */
const SETTLE_CONNECTED_MS = 45_000
const WARM_UP_CLIENTS = 200
const WARM_UP_EVENTS = 100
const MAX_P99_MS = 10
const MAX_CPU_ADDED = 0.01

const options = benchArguments('npm run bench:events -- [options]', {
  events: { help: 'events whose way is timed', default: '1000' },
  pause: { help: 'ms before each of them', default: '10' },
  clients: { help: 'clients that are connected and are sent nothing', default: '5000' },
  rounds: { help: 'how often each server is measured', default: '3' },
  rest: { help: 'seconds for which nothing is sent, to see what that costs', default: '20' },
})
const events = options.whole('events', 1)
const pauseMs = options.whole('pause')
const clients = options.whole('clients', 1)
const rounds = options.whole('rounds', 1)
const restMs = options.whole('rest', 1) * 1000
const environment = readEnvironment()

interface Server {
  readonly name: 'carpool' | 'plain node'
  readonly pid: number
  /** Without a slash at the end. */
  readonly url: string
}

interface Round {
  readonly server: Server['name']
  readonly round: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** The same while all clients are connected. */
  readonly besideIdleP50Ms: number
  readonly besideIdleP99Ms: number
  /** What each client that is connected takes of the server's process, in bytes. */
  readonly serverBytesPerClient: number
  /** The same of the hosts. */
  readonly hostBytesPerClient: number
  /** Of one core, of all processes, while all are connected and nothing is sent. */
  readonly cpuAtRest: number
  /** The same while nobody is connected. */
  readonly cpuAlone: number
}

interface Rest {
  readonly cpu: number
  readonly serverBytes: number
  readonly hostBytes: number
}

await using folder = await temporaryFolder()
await using carpool = await startCarpool({
  dataDir: join(folder.path, 'data'),
  // All clients belong to one host. One is in use and none in reserve, so that what it takes of shared memory stays the same.
  // The clock of a function runs, so that it says when it has written and not when its timer was due.
  flags: ['--max-hosts', '1', '--standby-hosts', '0', '--guest-clock', 'running'],
})
const deployed = await carpool.deploy(fileURLToPath(new URL('emitter.js', import.meta.url)), 'emitter')
await using plain = await startChildServer({
  command: process.execPath,
  args: [fileURLToPath(new URL('plain-server.js', import.meta.url))],
  parseReady: (line) => parseJsonLine<{ port: number }>(line)?.port,
})
const servers: readonly Server[] = [
  { name: 'carpool', pid: carpool.pid, url: deployed.url.replace(/\/$/, '') },
  { name: 'plain node', pid: plain.pid, url: `http://127.0.0.1:${plain.ready}` },
]

async function restOf({ pid }: Server): Promise<Rest> {
  const watch = await watchProcesses([pid], LOOK_MS)
  await sleep(restMs)
  const { cpuSeconds, processes } = await watch.stop()
  const bytesOf = (isMeant: (process: (typeof processes)[number]) => boolean): number =>
    processes.filter(isMeant).reduce((sum, { peakBytes }) => sum + peakBytes, 0)
  return {
    cpu: cpuSeconds / (restMs / 1000),
    serverBytes: bytesOf((process) => process.pid === pid),
    hostBytes: bytesOf(({ program }) => isCarpoolHost(program)),
  }
}

function pacedUrl({ url }: Server, count: number): string {
  return `${url}/paced?events=${count}&pause=${pauseMs}`
}

async function runRound(server: Server, round: number): Promise<Round> {
  const latencies = await timeEvents(pacedUrl(server, events), events)
  await sleep(SETTLE_MS)
  const alone = await restOf(server)
  using idle = await connectIdle(`${server.url}/idle`, clients)
  await sleep(SETTLE_CONNECTED_MS)
  const rest = await restOf(server)
  const besideIdle = await timeEvents(pacedUrl(server, events), events)
  idle.check()
  const result: Round = {
    server: server.name,
    round,
    p50Ms: percentile(latencies, 50),
    p99Ms: percentile(latencies, 99),
    besideIdleP50Ms: percentile(besideIdle, 50),
    besideIdleP99Ms: percentile(besideIdle, 99),
    serverBytesPerClient: (rest.serverBytes - alone.serverBytes) / clients,
    hostBytesPerClient: (rest.hostBytes - alone.hostBytes) / clients,
    cpuAtRest: rest.cpu,
    cpuAlone: alone.cpu,
  }
  progress(`round ${round + 1}: ${server.name} p99 ${milliseconds(result.p99Ms)}, ${share(rest.cpu - alone.cpu)} added at rest`)
  return result
}

function share(value: number): string {
  return `${(value * 100).toFixed(2)} %`
}

// What is compiled and allocated once is no cost of the clients.
for (const server of servers) {
  await timeEvents(pacedUrl(server, WARM_UP_EVENTS), WARM_UP_EVENTS)
  using _idle = await connectIdle(`${server.url}/idle`, Math.min(clients, WARM_UP_CLIENTS))
}
await sleep(SETTLE_MS)

const measured: Round[] = []
for (let round = 0; round < rounds; round++) {
  for (const server of servers) {
    measured.push(await runRound(server, round))
    await sleep(SETTLE_MS)
  }
}

const COLUMNS: ReadonlyArray<Column<Round>> = [
  { title: 'round', text: ({ round }) => String(round + 1) },
  { title: 'server', align: 'left', text: ({ server }) => server },
  { title: 'p50', text: ({ p50Ms }) => milliseconds(p50Ms) },
  { title: 'p99', text: ({ p99Ms }) => milliseconds(p99Ms) },
  { title: 'p50 beside idle', text: ({ besideIdleP50Ms }) => milliseconds(besideIdleP50Ms) },
  { title: 'p99 beside idle', text: ({ besideIdleP99Ms }) => milliseconds(besideIdleP99Ms) },
  { title: 'server per client', text: ({ serverBytesPerClient }) => kibibytes(serverBytesPerClient) },
  {
    title: 'host per client',
    text: ({ server, hostBytesPerClient }) => (server === 'carpool' ? kibibytes(hostBytesPerClient) : ''),
  },
  { title: 'CPU at rest', text: ({ cpuAtRest }) => share(cpuAtRest) },
  { title: 'with no clients', text: ({ cpuAlone }) => share(cpuAlone) },
]
const ofCarpool = (value: (round: Round) => number): number =>
  median(measured.filter(({ server }) => server === 'carpool').map(value))
publish(
  {
    bench: 'events',
    title: `Server-sent events: ${events} of them, ${pauseMs} ms apart, and ${clients} clients to which nothing is sent`,
    environment,
    blocks: [
      renderTable(COLUMNS, measured, options.markdown ? 'markdown' : 'plain'),
      'Times are from the write in the function to the arrival at the client, by one clock: that of the machine, in nanoseconds.',
    ],
    verdicts: [
      atMost(
        'aim',
        'p99 of an event',
        ofCarpool(({ p99Ms }) => p99Ms),
        MAX_P99_MS,
        milliseconds,
      ),
      atMost(
        'aim',
        'p99 of an event beside idle clients',
        ofCarpool(({ besideIdleP99Ms }) => besideIdleP99Ms),
        MAX_P99_MS,
        milliseconds,
      ),
      atMost(
        'aim',
        'CPU of a core that idle clients add',
        ofCarpool(({ cpuAtRest, cpuAlone }) => cpuAtRest - cpuAlone),
        MAX_CPU_ADDED,
        share,
      ),
    ],
    results: { events, pauseMs, clients, restSeconds: restMs / 1000, rounds: measured },
  },
  options,
)
