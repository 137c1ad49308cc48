/**
 * Processes in real sandboxes, as far as this machine has what it takes. They are shells: tap hooks into every Node.js process
 * that a test starts.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, copyFileSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import t from 'tap'
import { processSandbox, type ProcessSandbox, type SandboxedProcess } from '../src/spawn.ts'
import { prepareHostGroups } from '../src/control-groups.ts'
import { findTools } from '../src/tools.ts'
import { cover, type Stdio } from '../src/processes.ts'
import type { LayerName } from '../src/layers.ts'
import { planOf } from './support/plan.ts'

const tools = findTools()

function sandboxOf(wanted: readonly LayerName[]): ProcessSandbox {
  return processSandbox(planOf(wanted, { tools, filter: undefined }))
}

/** Runs a line of shell in the sandbox. */
function run(sandbox: ProcessSandbox, line: string): SandboxedProcess {
  return sandbox.spawn({ nodePath: '/bin/sh', nodeArguments: ['-c', line] })
}

async function endOf(process: SandboxedProcess) {
  const [code, signal] = (await once(process.child, 'exit')) as [number | null, NodeJS.Signals | null]
  return process.endOf(code, signal)
}

const SANDBOXES: ReadonlyArray<readonly [name: string, layers: readonly LayerName[]]> = [
  ['alone', ['rlimits']],
  ['behind bubblewrap', ['network-namespace']],
  ['behind bubblewrap, with processes of its own', ['network-namespace', 'pid-namespace']],
]

for (const [name, layers] of SANDBOXES) {
  const sandbox = sandboxOf(layers)
  const works = (await endOf(run(sandbox, 'exit 0'))).exitCode === 0
  t.test(`a process ${name}`, { skip: !works && 'bubblewrap does not work on this machine' }, async (t) => {
    t.test('reports how it ended', async (t) => {
      t.strictSame(await endOf(run(sandbox, 'exit 3')), { exitCode: 3, signal: null })
      for (const signal of ['SIGABRT', 'SIGSEGV', 'SIGKILL', 'SIGTERM'])
        t.strictSame(await endOf(run(sandbox, `kill -${signal.slice(3)} $$`)), { exitCode: null, signal }, signal)
    })

    t.test('has the id by which the system knows it', async (t) => {
      const started = run(sandbox, 'echo up >&2; read line <&3')
      await once(started.child.stderr!, 'data')
      t.match(readFileSync(`/proc/${started.pid()}/cmdline`, 'latin1'), /^\/bin\/sh\0-c\0echo up/)
      t.equal(started.pid(), started.pid())
      started.kill()
      t.strictSame(await endOf(started), { exitCode: null, signal: 'SIGKILL' })
    })

    t.test('may be ended before it is there, and more than once', async (t) => {
      const started = run(sandbox, 'read line <&3')
      t.ok(started.pid() > 0)
      started.kill()
      started.kill()
      t.match(await endOf(started), { exitCode: null, signal: 'SIGKILL' })
      started.kill()
    })

    t.test('is not reported as killed when it had ended by itself', async (t) => {
      for (let round = 0; round < 20; round++) {
        const started = run(sandbox, 'kill -ABRT $$')
        const end = endOf(started)
        const socket = started.child.stdio[3] as Duplex
        // It breaks before the process in front reports the end.
        await once(socket.resume(), 'end')
        started.kill()
        t.match(await end, { signal: 'SIGABRT' })
      }
    })
  })
}

t.test('what cannot be started says so in an event, and has no id', async (t) => {
  const started = processSandbox(planOf([], { tools: {} })).spawn({ nodePath: '/nothing/here', nodeArguments: [] })
  t.equal(started.pid(), 0)
  const [cause] = (await once(started.child, 'error')) as [NodeJS.ErrnoException]
  t.equal(cause.code, 'ENOENT')
})

const groups = prepareHostGroups({ memoryBytes: 64 * 1024 * 1024, tasks: 16 })
const skip = groups.controllers.size === 0 && [...groups.missing.values()].join(' ')

t.test('control groups hold the process and what it starts, and end with it', { skip }, async (t) => {
  const sandbox = processSandbox(planOf([], { tools }), { groups })
  const started = run(sandbox, 'sleep 1000 & echo $! >&2; read line <&3')
  const [left] = (await once(started.child.stderr!, 'data')) as [Buffer]
  const folders = [...new Set(started.groups.values())]
  for (const folder of folders) {
    const members = readFileSync(join(folder, 'cgroup.procs'), 'utf8').trim().split('\n').toSorted()
    t.strictSame(members, [String(started.pid()), String(left).trim()].toSorted())
  }
  started.kill()
  await endOf(started)
  while (folders.some((folder) => existsSync(folder))) await new Promise((resolve) => setTimeout(resolve, 5))
  t.match(stateOf(Number(left)), /^[ZX]?$/, 'what it started has ended')
})

const isRoot = process.getuid?.() === 0

t.test('a program that gives its rights away gives none', { skip: !isRoot && 'only root has any to give' }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  chmodSync(folder, 0o755)
  const program = join(folder, 'id')
  copyFileSync('/usr/bin/id', program)
  chmodSync(program, 0o4755)
  const userIn = async (layers: readonly LayerName[]): Promise<string> => {
    const started = run(sandboxOf(layers), `${program} -u >&2`)
    return String(await started.child.stderr!.toArray()).trim()
  }
  if ((await userIn(['user'])) !== '0') return t.comment('no program gives rights away in the folder for temporary files')
  t.equal(await userIn(['user', 'no-new-privileges']), '4711')
})

/** Empty if there is no such process. */
function stateOf(pid: number): string {
  try {
    return /^State:\s*(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''
  } catch {
    return ''
  }
}

t.test('what is left open here is not open there', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  const fd = openSync(join(folder, 'secret'), 'w')
  t.teardown(() => {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  })
  // A server that was itself started with descriptors open. Node.js sees to the low ones only.
  const server = `
    import { processSandbox } from ${JSON.stringify(new URL('../src/spawn.ts', import.meta.url).href)}
    import { findTools } from ${JSON.stringify(new URL('../src/tools.ts', import.meta.url).href)}
    import { readlinkSync } from 'node:fs'
    for (const fd of [9, 10, 62, 63, 200]) console.log(fd + " =", readlinkSync('/proc/self/fd/' + fd))
    const sandbox = processSandbox({ wanted: new Set(), tools: findTools(), folders: [], libraries: [], serverUid: 0, uid: 0, userTasks: 0, ownProc: true, filter: undefined })
    const { child } = sandbox.spawn({ nodePath: '/bin/sh', nodeArguments: ['-c', 'ls -l /proc/$$/fd >&2'] })
    child.stderr.pipe(process.stdout)`
  const open = [9, 10, 62, 63, 200]
  const stdio = Array.from({ length: 201 }, (_, number) => (open.includes(number) ? fd : 'ignore'))
  const { stdout } = spawn('env', ['-i', process.execPath, '--input-type=module', '-e', server], {
    stdio: ['ignore', 'pipe', 'inherit', ...stdio.slice(3)],
  })
  const text = Buffer.concat((await stdout?.toArray()) ?? []).toString()
  for (const number of open) t.match(text, new RegExp(`^${number} = .*secret$`, 'm'), 'it is open in the server')
  t.match(text, / 3 -> socket:/)
  t.notMatch(text, /-> .*secret/)
})

t.test('descriptors are covered in any order, but for those with a use', async (t) => {
  const stdio: Stdio = ['ignore', 'ignore', 'pipe', 'pipe', 44]
  cover(stdio, [200, 10, 9, 4, 3, 1, 7], 99)
  t.strictSame(stdio.slice(0, 11), ['ignore', 'ignore', 'pipe', 'pipe', 44, 'ignore', 'ignore', 99, 'ignore', 99, 99])
  t.equal(stdio.length, 201)
  t.equal(stdio[200], 99)
})
