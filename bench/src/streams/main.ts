/** Bodies that stream: Carpool against plain Node.js, in interleaved pairs, with what each process has in memory meanwhile. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { benchArguments } from '../lib/arguments.ts'
import { startCarpool } from '../lib/carpool-server.ts'
import { parseJsonLine, startChildServer, type ChildServer } from '../lib/child-server.ts'
import { readEnvironment } from '../lib/environment.ts'
import { readTree } from '../lib/process-tree.ts'
import { megabytes, times } from '../lib/quantities.ts'
import { progress, publish } from '../lib/report.ts'
import { untilStandby } from '../lib/standby.ts'
import { median } from '../lib/statistics.ts'
import { renderTable, type Column } from '../lib/table.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { atLeast, atMost } from '../lib/verdict.ts'
import { watchMemory, type MemoryCourse, type WatchedProcess } from './memory-course.ts'
import { PART_BYTES, transfer, type Progress } from './transfer.ts'
import { WORKLOADS, type Workload, type WorkloadName } from './workloads.ts'

const MEGABYTE = 2 ** 20
const WARM_UP_BYTES = 32 * MEGABYTE
/** What garbage that is not yet collected may add: it does not grow with the bytes. */
const MAX_GROWTH_BYTES = 32e6
/** The workloads are to reach no limit of time. */
const LIMITS = ['--cpu-ms', '900000', '--timeout-ms', '900000', '--stream-ms', '0']

const options = benchArguments('npm run bench:streams -- [options]', {
  megabytes: { help: 'length of a body in MiB; 1024 for what is claimed', default: '256' },
  rounds: { help: 'how often each server is measured', default: '3' },
  only: { help: 'workloads, between commas', default: WORKLOADS.map(({ name }) => name).join(',') },
})
const bytes = options.whole('megabytes', 1) * MEGABYTE
const rounds = options.whole('rounds', 1)
const wanted = options.words(
  'only',
  WORKLOADS.map(({ name }) => name),
)
const workloads = WORKLOADS.filter(({ name }) => wanted.has(name))
const environment = readEnvironment()

interface Server {
  readonly name: 'carpool' | 'plain node'
  readonly pid: number
  /** Without a slash at the end. */
  readonly url: string
  /** Whose memory is looked at. */
  processes(): Promise<readonly WatchedProcess[]>
}

interface Run {
  readonly server: Server['name']
  readonly workload: WorkloadName
  readonly round: number
  readonly bytesPerSecond: number
  /** Of all processes of the server. */
  readonly cpuSeconds: number
  readonly memory: readonly MemoryCourse[]
}

function startPlain(): Promise<ChildServer<number>> {
  return startChildServer({
    command: process.execPath,
    args: [fileURLToPath(new URL('plain-server.js', import.meta.url))],
    parseReady: (line) => parseJsonLine<{ port: number }>(line)?.port,
  })
}

await using folder = await temporaryFolder()
await using carpool = await startCarpool({
  dataDir: join(folder.path, 'data'),
  flags: ['--max-hosts', '1', '--allow-egress', '127.0.0.0/8'],
})
const program = fileURLToPath(new URL('streaming.js', import.meta.url))
const deployed = JSON.parse(await carpool.command('deploy', program, '--name', 'streaming', ...LIMITS, '--json')) as {
  url: string
}
await untilStandby(carpool)
await using plain = await startPlain()
await using origin = await startPlain()
const servers: readonly Server[] = [
  {
    name: 'carpool',
    pid: carpool.pid,
    url: deployed.url.replace(/\/$/, ''),
    processes: async () => {
      const hosts = (await carpool.hosts()).filter(({ state }) => state === 'ready')
      return [{ role: 'server', pid: carpool.pid }, ...hosts.map(({ pid }) => ({ role: 'host' as const, pid }))]
    },
  },
  {
    name: 'plain node',
    pid: plain.pid,
    url: `http://127.0.0.1:${plain.ready}`,
    processes: async () => [{ role: 'server', pid: plain.pid }],
  },
]

function urlOf(server: Server, { name }: Workload, length: number): string {
  const from = `http://127.0.0.1:${origin.ready}/download?bytes=${length}`
  return `${server.url}/${name}?${new URLSearchParams({ bytes: String(length), from }).toString()}`
}

function cpuSecondsOf(pid: number): number {
  return readTree([pid]).reduce((sum, { cpuSeconds, endedChildrenCpuSeconds }) => sum + cpuSeconds + endedChildrenCpuSeconds, 0)
}

async function runOnce(server: Server, workload: Workload, round: number): Promise<Run> {
  const at: Progress = { movedBytes: 0 }
  const watch = watchMemory(await server.processes(), at, bytes)
  const beforeCpuSeconds = cpuSecondsOf(server.pid)
  const durationMs = await transfer(urlOf(server, workload, bytes), workload, bytes, at)
  const cpuSeconds = cpuSecondsOf(server.pid) - beforeCpuSeconds
  const memory = watch.stop()
  const bytesPerSecond = bytes / (durationMs / 1000)
  progress(`round ${round + 1}: ${workload.name} ${server.name} ${perSecond(bytesPerSecond)}`)
  return { server: server.name, workload: workload.name, round, bytesPerSecond, cpuSeconds, memory }
}

function perSecond(rate: number): string {
  return `${Math.round(rate / 1e6)} MB/s`
}

const runs: Run[] = []
for (const workload of workloads) {
  // What is compiled and allocated once is no cost of the bytes.
  const length = Math.min(bytes, WARM_UP_BYTES)
  for (const server of servers) await transfer(urlOf(server, workload, length), workload, length, { movedBytes: 0 })
  for (let round = 0; round < rounds; round++) {
    for (const server of round % 2 === 0 ? servers : servers.toReversed()) runs.push(await runOnce(server, workload, round))
  }
}

/** A workload at a server: medians over the rounds. */
interface Row {
  readonly workload: Workload
  readonly server: Server['name']
  readonly bytesPerSecond: number
  /** Median of the ratios within the rounds. */
  readonly ratio: number
  readonly cpuSecondsPerGigabyte: number
  readonly memory: Readonly<Partial<Record<MemoryCourse['role'], Pick<MemoryCourse, 'peakBytes' | 'growthBytes'>>>>
}

function rowOf(workload: Workload, server: Server['name']): Row {
  const of = (name: Server['name']): Run[] => runs.filter((run) => run.workload === workload.name && run.server === name)
  const own = of(server)
  const memoryOf = (role: MemoryCourse['role']): Row['memory'] => {
    const courses = own.flatMap(({ memory }) => memory.filter((course) => course.role === role))
    if (courses.length === 0) return {}
    const peakBytes = median(courses.map((course) => course.peakBytes))
    return { [role]: { peakBytes, growthBytes: median(courses.map((course) => course.growthBytes)) } }
  }
  const baseline = of('plain node')
  return {
    workload,
    server,
    bytesPerSecond: median(own.map((run) => run.bytesPerSecond)),
    ratio: median(
      own.map((run) => run.bytesPerSecond / (baseline.find(({ round }) => round === run.round)?.bytesPerSecond ?? Number.NaN)),
    ),
    cpuSecondsPerGigabyte: median(own.map((run) => run.cpuSeconds)) / (bytes / 1e9),
    memory: { ...memoryOf('server'), ...memoryOf('host') },
  }
}

const rows = workloads.flatMap((workload) => servers.map(({ name }) => rowOf(workload, name)))
const memoryText = ({ memory }: Row, role: MemoryCourse['role'], value: 'peakBytes' | 'growthBytes'): string => {
  const course = memory[role]
  return course === undefined ? '' : megabytes(course[value])
}
const COLUMNS: ReadonlyArray<Column<Row>> = [
  { title: 'workload', align: 'left', text: ({ workload }) => workload.name },
  { title: 'server', align: 'left', text: ({ server }) => server },
  { title: 'rate', text: ({ bytesPerSecond }) => perSecond(bytesPerSecond) },
  { title: 'of plain', text: ({ ratio }) => times(ratio) },
  { title: 'CPU per GB', text: ({ cpuSecondsPerGigabyte }) => `${cpuSecondsPerGigabyte.toFixed(2)} s` },
  { title: 'server peak', text: (row) => memoryText(row, 'server', 'peakBytes') },
  { title: 'grown by', text: (row) => memoryText(row, 'server', 'growthBytes') },
  { title: 'host peak', text: (row) => memoryText(row, 'host', 'peakBytes') },
  { title: 'grown by', text: (row) => memoryText(row, 'host', 'growthBytes') },
]
const ofCarpool = rows.filter(({ server }) => server === 'carpool')
publish(
  {
    bench: 'streams',
    title: `Bodies of ${bytes / MEGABYTE} MiB that stream, one at a time, in parts of ${PART_BYTES / 1024} KiB`,
    environment,
    blocks: [
      renderTable(COLUMNS, rows, options.markdown ? 'markdown' : 'plain'),
      workloads.map(({ name, what }) => `${name}: ${what}`).join('\n'),
      'Grown by: the peak of resident memory in the second half of the bytes, less that in the first half.',
    ],
    verdicts: [
      ...ofCarpool.flatMap(({ workload: { name, minRatio }, ratio }) =>
        minRatio === undefined ? [] : [atLeast('aim', `${name}, rate against plain node`, ratio, minRatio, times)],
      ),
      ...ofCarpool.flatMap(({ workload, memory }) =>
        (['server', 'host'] as const).map((role) =>
          atMost('aim', `${workload.name}, growth of the ${role}`, memory[role]?.growthBytes ?? 0, MAX_GROWTH_BYTES, megabytes),
        ),
      ),
    ],
    results: {
      bytes,
      workloads: rows.map(({ workload, ...row }) => ({ workload: workload.name, ...row })),
      runs,
    },
  },
  options,
)
