import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { attribute } from '../src/hop/attribution.ts'
import { costColumns, costRows, threadColumns, threadRows } from '../src/hop/columns.ts'
import { budgetSums, costsOf } from '../src/hop/costs.ts'
import { giveOwnCore, listedCores } from '../src/hop/own-core.ts'
import type { CallFrame, CpuProfile, TakenProfile } from '../src/hop/profile-types.ts'
import { bundledFiles, SourceFiles } from '../src/hop/source-files.ts'
import { roleOf, STAGES } from '../src/hop/stages.ts'
import { figuresBetween, mediansOf } from '../src/hop/totals.ts'
import { startChildServer } from '../src/lib/child-server.ts'
import { repositoryPath } from '../src/lib/repository.ts'
import { renderTable } from '../src/lib/table.ts'
import { temporaryFolder } from '../src/lib/temporary-folder.ts'
import { readThreads, type ThreadReading } from '../src/lib/thread-table.ts'

/** A stack from the outside in, as `function file`, and how long its top was on it. */
type Stack = readonly [frames: readonly string[], us: number]

/** A profile in which each stack has nodes of its own, as if it had been sampled once. */
function profileOf(stacks: readonly Stack[]): CpuProfile {
  const nodes: Array<{ id: number; callFrame: CallFrame; children: number[] }> = []
  const samples = stacks.map(([frames]) => {
    const ids = frames.map((frame) => {
      const [, functionName = '', url = ''] = /^(.*?)(?: (\S*))?$/.exec(frame) ?? []
      nodes.push({ id: nodes.length + 1, callFrame: { functionName, url, scriptId: '0', lineNumber: 0 }, children: [] })
      return nodes.length
    })
    for (const [index, id] of ids.entries()) nodes[id - 1]?.children.push(...ids.slice(index + 1, index + 2))
    return ids.at(-1) ?? 0
  })
  return { nodes, samples, timeDeltas: stacks.map(([, us]) => us) }
}

function stagesOf(stacks: readonly Stack[], cpuUs = 0, process: 'server' | 'host' = 'server'): Record<string, number> {
  const taken: TakenProfile = { profile: profileOf(stacks), cpuUs, sources: {} }
  const { stages } = attribute(taken, STAGES[process], ({ url }) => url)
  return Object.fromEntries(Object.entries(stages).filter(([, share]) => share > 0))
}

const ROOT = '(root)'
const TICKS = 'processTicksAndRejections node:internal/process/task_queues'
const INVOKE = '(anonymous) packages/server/src/invoke.ts'

t.test('time belongs to the nearest file of ours on the stack', async (t) => {
  const incoming = [ROOT, 'parserOnIncoming node:_http_server']
  const encoder = [ROOT, TICKS, INVOKE, 'writeFinished packages/gateway/src/response-encoder.ts']
  t.strictSame(
    stagesOf([
      [[...incoming, 'listener packages/gateway/src/gateway.ts', 'emit node:events'], 10],
      [[ROOT, TICKS, INVOKE], 20],
      [[ROOT, TICKS, INVOKE, 'write packages/ledger/src/ledger-writer.ts', 'monotonicClock packages/core/src/clock.ts'], 30],
      [[...encoder, 'end node:_http_outgoing', 'writeLatin1String '], 40],
    ]),
    { gateway: 0.1, placement: 0.2, record: 0.3, answer: 0.4 },
  )
})

t.test('what nobody of ours called belongs to what Node.js does for a stage, or to the rest', async (t) => {
  t.strictSame(
    stagesOf([
      [[ROOT, 'parserOnHeadersComplete node:_http_common', 'IncomingMessage node:_http_incoming'], 10],
      [[ROOT, 'parserOnIncoming node:_http_server', 'preHandler node_modules/fastify/lib/handle-request.js'], 10],
      [[ROOT, TICKS, 'onFinish node:_http_outgoing', 'emit node:events'], 20],
      [[ROOT, 'onStreamRead node:internal/stream_base_commons', 'addChunk node:internal/streams/readable'], 10],
      [[ROOT, TICKS], 20],
      [[ROOT, '(program) '], 10],
      [[ROOT, '(garbage collector) '], 20],
    ]),
    { 'gateway': 0.2, 'wire': 0.1, 'answer': 0.2, 'garbage collection': 0.2, 'rest': 0.3 },
  )
})

t.test('what the profiler itself does is left out', async (t) => {
  const stacks: Stack[] = [
    [[ROOT, TICKS, INVOKE], 100],
    [[ROOT, TICKS, 'stop file:///elsewhere/bench/src/hop/self-profile.mjs', 'now '], 100],
    [[ROOT, 'post node:inspector'], 100],
  ]
  t.strictSame(stagesOf(stacks), { placement: 1 })
})

t.test('CPU time beyond what the samples show is the work of the event loop', async (t) => {
  const stacks: Stack[] = [
    [[ROOT, '(idle) '], 500],
    [[ROOT, TICKS, INVOKE], 100],
  ]
  t.strictSame(stagesOf(stacks, 400), { 'placement': 0.25, 'event loop': 0.75 })
  t.strictSame(stagesOf(stacks, 90), { placement: 1 }, 'samples are coarser than the clock')
  t.throws(() => stagesOf([[[ROOT, '(idle) '], 500]]), /shows no work/)
})

t.test('a sample that was held up stands for no more than a while', async (t) => {
  const stacks: Stack[] = [
    [[ROOT, TICKS, INVOKE], 1000],
    [[ROOT, 'onFinish node:_http_outgoing'], 30_000],
  ]
  t.strictSame(stagesOf(stacks), { placement: 0.5, answer: 0.5 })
})

t.test('a host has stages of its own', async (t) => {
  const stacks: Stack[] = [
    [[ROOT, 'onStreamRead node:internal/stream_base_commons', 'read packages/wire/src/frame.ts'], 50],
    [[ROOT, 'onStreamRead node:internal/stream_base_commons', 'receive host/src/host.ts', 'apply '], 50],
  ]
  t.strictSame(stagesOf(stacks, 0, 'host'), { wire: 0.5, invocations: 0.5 })
})

t.test('each rule for files of ours names some that there are', async (t) => {
  const files = globSync('{packages/*,host}/src/**/*.ts', { cwd: repositoryPath('') })
  for (const [process, { own, foreign, stages }] of Object.entries(STAGES)) {
    for (const { file } of own)
      t.ok(
        files.some((path) => file.test(path)),
        `${process}: ${String(file)}`,
      )
    t.ok(
      [...own, ...foreign].every(({ stage }) => stages.includes(stage)),
      `${process}: stages that are in the table`,
    )
  }
})

t.test('files are named from the root of the checkout, in a bundle by its comments', async (t) => {
  const code = ['var a = 1', '// ../../packages/wire/src/frame.ts', 'function read() {}', '// process.ts', 'read()'].join('\n')
  t.strictSame(bundledFiles(code), [
    { path: 'packages/wire/src/frame.ts', firstLine: 1 },
    { path: 'host/src/process.ts', firstLine: 3 },
  ])
  const root = repositoryPath('')
  const files = new SourceFiles(root, { 7: code })
  const frame = (url: string, scriptId = '1', lineNumber = 0): CallFrame => ({ functionName: '', url, scriptId, lineNumber })
  t.equal(files.fileOf(frame('file:///[eval1]', '7', 2)), 'packages/wire/src/frame.ts')
  t.equal(files.fileOf(frame('file:///[eval1]', '7', 4)), 'host/src/process.ts')
  t.equal(files.fileOf(frame('file:///[eval1]', '7', 0)), '', 'before the first file')
  t.equal(files.fileOf(frame(new URL('../src/hop/main.ts', import.meta.url).href)), 'bench/src/hop/main.ts')
  t.equal(files.fileOf(frame(join(root, 'node_modules/a b/c.js'))), 'node_modules/a b/c.js')
  t.equal(files.fileOf(frame('node:net')), 'node:net')
  t.equal(files.fileOf(frame('')), '')
})

const thread = (id: number, name: string, cpuSeconds: number, voluntarySwitches = 0, involuntarySwitches = 0): ThreadReading => ({
  id,
  name,
  isMain: id === 1,
  cpuSeconds,
  voluntarySwitches,
  involuntarySwitches,
})

t.test('threads have roles by their names', async (t) => {
  const role = (process: 'server' | 'host', name: string, id = 2): string => roleOf(process, thread(id, name, 0))
  t.strictSame(
    [
      role('server', 'node-MainThread', 1),
      role('server', 'carpool-ledger'),
      role('server', 'carpool-egress'),
      role('server', 'node-V8Worker'),
      role('server', 'libuv-worker'),
    ],
    ['main', 'ledger', 'egress', 'V8 helpers', 'others'],
  )
  t.strictSame(
    [
      role('host', 'node-MainThread', 1),
      role('host', 'node-MainThread'),
      role('host', 'DelayedTaskSche'),
      role('host', 'libuv-worker'),
    ],
    ['main', 'isolates', 'V8 helpers', 'others'],
  )
})

const BEFORE = {
  server: [thread(1, 'node-MainThread', 1, 100, 10), thread(2, 'carpool-ledger', 5, 7)],
  host: [thread(1, 'node-MainThread', 2), thread(3, 'node-MainThread', 1), thread(4, 'node-MainThread', 9)],
}
/** One of the host's isolate threads is gone, and another has come. */
const AFTER = {
  server: [thread(1, 'node-MainThread', 3, 300, 20), thread(2, 'carpool-ledger', 5.5, 57)],
  host: [thread(1, 'node-MainThread', 3), thread(3, 'node-MainThread', 1.5), thread(5, 'node-MainThread', 0.25, 1)],
}

t.test('what threads used between two readings is divided by the calls', async (t) => {
  const figures = figuresBetween(BEFORE, AFTER, 100_000)
  const shown = figures
    .filter(({ microsPerCall }) => microsPerCall > 0)
    .map(({ process, role, microsPerCall, wakeUpsPerCall, preemptionsPerCall }) => [
      `${process} ${role}`,
      microsPerCall,
      wakeUpsPerCall,
      preemptionsPerCall,
    ])
  t.strictSame(shown, [
    ['server main', 20, 0.002, 0.0001],
    ['server ledger', 5, 0.0005, 0],
    ['host main', 10, 0, 0],
    ['host isolates', 7.5, 0.000_01, 0],
  ])
  const slower = figuresBetween(BEFORE, AFTER, 50_000)
  t.equal(mediansOf([figures, slower, figures])[0]?.microsPerCall, 20)
})

t.test('stages and threads come to the sums, and the table shows checkouts beside each other', async (t) => {
  const threads = figuresBetween(BEFORE, AFTER, 100_000)
  const profiles = {
    server: { stages: { gateway: 0.75, wire: 0.25 }, functions: [] },
    host: { stages: { wire: 1 }, functions: [] },
  }
  const costs = costsOf(threads, profiles)
  t.strictSame(budgetSums(costs), { server: 20, host: 17.5, ledger: 5 })
  const results = ['carpool', 'before'].map((name) => ({ name, commit: 'abc1234', rates: [1], threads, costs }))
  const lines = renderTable(costColumns(results), costRows(results)).split('\n')
  const line = (start: RegExp): string | undefined => lines.find((text) => start.test(text))?.replaceAll(/\s+/g, ' ')
  t.equal(line(/^server +gateway/), 'server gateway 15.00 35.3 % 15.00 35.3 %')
  t.equal(line(/^server +thread: ledger/), 'server thread: ledger 5.00 11.8 % 5.00 11.8 %')
  t.equal(line(/^sum +host/), 'sum host 17.50 41.2 % 17.50 41.2 %')
  t.equal(line(/^sum +all/), 'sum all 42.50 100.0 % 42.50 100.0 %')
  const threadLines = renderTable(threadColumns(results), threadRows(results)).split('\n')
  t.equal(threadLines[2]?.replaceAll(/\s+/g, ' '), 'server main 20.00 0.002 0.000 20.00 0.002 0.000')
})

t.test('threads of a process are read from the system', { skip: process.platform !== 'linux' }, async (t) => {
  const main = readThreads(process.pid).find(({ isMain }) => isMain)
  t.ok(main !== undefined && main.cpuSeconds > 0 && main.voluntarySwitches + main.involuntarySwitches > 0)
  t.strictSame(readThreads(2 ** 22 + 1), [], 'no such process')
})

t.test('a thread gets a core that the others leave', { skip: process.platform !== 'linux' }, async (t) => {
  t.strictSame(listedCores('0-2,5'), [0, 1, 2, 5])
  t.strictSame(listedCores(''), [])
  await using child = await startChildServer({
    command: process.execPath,
    args: ['-e', 'console.log("ready"); setInterval(() => {}, 1000)'],
    parseReady: (line) => line,
  })
  const coresOf = (thread: string): number[] =>
    listedCores(/^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${child.pid}/${thread}/status`, 'utf8'))?.[1] ?? '')
  const helper = readThreads(child.pid).find(({ isMain }) => !isMain)
  const before = coresOf('.')
  const given = giveOwnCore(child.pid, [child.pid])
  if (given === undefined) return t.pass('one core, or no taskset')
  t.equal(coresOf('.').length, 1)
  t.notOk(coresOf(`task/${helper?.id}`).includes(coresOf('.')[0] ?? -1), 'its other threads are elsewhere')
  given[Symbol.dispose]()
  t.strictSame(coresOf('.'), before)
})

t.test('a server and its host profile themselves when they are told to', async (t) => {
  await using folder = await temporaryFolder()
  const agent = new URL('../src/hop/profile-server.mjs', import.meta.url)
  agent.searchParams.set('folder', folder.path)
  await using server = await startChildServer({
    // Tap adds hooks to every Node.js process that a test starts itself, and a host may not read them.
    command: 'env',
    args: ['-i', process.execPath, `--import=${agent.href}`, join(import.meta.dirname, 'fixtures/profiled-server.mjs')],
    parseReady: (line) => line,
  })
  for (const name of ['started', 'profiles']) {
    process.kill(server.pid, 'SIGUSR2')
    while (!existsSync(join(folder.path, `${name}.json`))) await delay(50)
    // Some work to see.
    await delay(100)
  }
  const taken = JSON.parse(readFileSync(join(folder.path, 'profiles.json'), 'utf8')) as {
    server: TakenProfile
    hosts: TakenProfile[]
  }
  const names = (profile: TakenProfile | undefined): unknown[] =>
    profile?.profile.nodes.map(({ callFrame }) => callFrame.functionName) ?? []
  t.ok(names(taken.server).includes('burnInServer'))
  t.equal(taken.hosts.length, 1)
  t.ok(names(taken.hosts[0]).includes('burnInHost'))
  t.match(Object.values(taken.hosts[0]?.sources ?? {}), [/function burnInHost/], 'code that came on standard input is told')
})
