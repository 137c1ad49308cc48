/**
 * A host with a deliberate hole: code that is loose in a process which was started exactly as a host is, and tries what it can.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, chmodSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { detectSandbox, type LayerName } from '../../../packages/sandbox/src/index.ts'
import { prepareHostGroups } from '../../../packages/sandbox/src/control-groups.ts'
import { sharedLibraries } from '../../../packages/sandbox/src/detect.ts'
import type { SandboxPlan } from '../../../packages/sandbox/src/command.ts'
import { ATTEMPT_NAMES, runProbe, type AttemptName, type Canaries } from '../../../packages/sandbox/src/run-probe.ts'
import { seccompFilter } from '../../../packages/sandbox/src/seccomp.ts'
import { processSandbox, type ProcessSandbox, type SandboxedProcess } from '../../../packages/sandbox/src/spawn.ts'
import { findTools } from '../../../packages/sandbox/src/tools.ts'
import { PERMISSION_FLAGS } from '../../../packages/server/src/hosts/host-program.ts'

const HOST_UID = 60_999
const MEBIBYTE = 1024 * 1024
/** Node.js alone has about ten threads; with a few more of it there are too many. */
const LIMITS = { memoryBytes: 320 * MEBIBYTE, tasks: 32 }

/**
 * Layers that this machine does not have, with the reason. One that it has and that does not hold is not among them: that is to
 * be seen.
 */
export async function missingHere(): Promise<ReadonlyMap<LayerName, string>> {
  const { layers } = await detectSandbox({
    isOff: false,
    nodePath: process.execPath,
    nodeFlags: PERMISSION_FLAGS,
    folders: [],
    hostUid: HOST_UID,
    limits: LIMITS,
  })
  return new Map(layers.filter(({ state }) => state === 'unavailable').map(({ name, why }) => [name, why]))
}

/** A sandbox with the given layers and no others. */
export function sandboxWith(layers: readonly LayerName[], rest: Partial<SandboxPlan> = {}): ProcessSandbox {
  const plan: SandboxPlan = {
    wanted: new Set(layers),
    tools: findTools(),
    folders: [],
    libraries: sharedLibraries(),
    serverUid: process.getuid?.(),
    uid: HOST_UID,
    userTasks: 1000,
    ownProc: true,
    filter: seccompFilter(process.arch),
    ...rest,
  }
  const controllers = [
    ...(layers.includes('cgroup-memory') ? (['memory'] as const) : []),
    ...(layers.includes('cgroup-tasks') ? (['pids'] as const) : []),
  ]
  return processSandbox(plan, { groups: prepareHostGroups(LIMITS, controllers) })
}

/** Flags of Node.js with which what is tried in place of a host with these layers runs. */
export function flagsWith(layers: readonly LayerName[]): readonly string[] {
  return layers.includes('permission') ? PERMISSION_FLAGS : []
}

/** Attempts that take a process of their own, as code for it; it ends with {@link DONE} if it could do it. */
const SCRIPTS = {
  'signal another host': ({ otherPid }) => `process.kill(${otherPid}, 'SIGTERM'); process.exit(${DONE})`,
  'learn the name of the machine': () =>
    `process.exit(require('node:os').hostname() === ${JSON.stringify(hostname())} ? ${DONE} : 1)`,
  'leave a core dump': ({ folder }) => `process.chdir(${JSON.stringify(folder)}); process.abort()`,
  'take much memory': () =>
    `const kept = []; for (let mb = 0; mb < 400; mb++) kept.push(Buffer.alloc(${MEBIBYTE}, 1)); process.exit(${DONE})`,
  'start many processes': () => `
    let up = 0
    for (let count = 0; count < 6; count++) {
      const code = 'process.stdout.write("x"); process.stdin.resume().once("close", process.exit)'
      const child = require('node:child_process').spawn(process.execPath, ['-e', code], { stdio: 'pipe' })
      child.once('error', () => process.exit(1)).once('exit', () => process.exit(1))
      child.stdout?.once('data', () => ++up === 6 && process.exit(${DONE}))
    }`,
} as const satisfies Record<string, (place: { readonly otherPid: number; readonly folder: string }) => string>

/** What code that is loose in a host may try. */
export type Attempt = AttemptName | keyof typeof SCRIPTS
export const ALL_ATTEMPTS = [...ATTEMPT_NAMES, ...Object.keys(SCRIPTS)] as readonly Attempt[]

const DONE = 7
/** A process that gets no threads may stand still. */
const SCRIPT_MS = 20_000

/** What code that is loose in a host with only these layers could do. */
export async function couldDo(layers: readonly LayerName[], canaries: Canaries): Promise<ReadonlySet<Attempt>> {
  const sandbox = sandboxWith(layers)
  const nodeArguments = flagsWith(layers)
  const order = { canaries, attempts: ATTEMPT_NAMES, wantsFacts: false }
  const probe = await runProbe(sandbox, { nodePath: process.execPath, nodeArguments }, order)
  if ('error' in probe) throw new Error(`Nothing runs with ${layers.join()}: ${probe.error}`)
  const done = new Set<Attempt>()
  for (const name of order.attempts) if (probe.answer.results[name] === 'done') done.add(name)
  for (const name of Object.keys(SCRIPTS) as Array<keyof typeof SCRIPTS>) {
    if (await scriptDoes(name, sandbox, nodeArguments)) done.add(name)
  }
  return done
}

async function scriptDoes(
  name: keyof typeof SCRIPTS,
  sandbox: ProcessSandbox,
  nodeArguments: readonly string[],
): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  chmodSync(folder, 0o777)
  const other = name === 'signal another host' ? await startOther(sandbox) : undefined
  try {
    const script = SCRIPTS[name]({ otherPid: other?.pid() ?? 0, folder })
    const loose = sandbox.spawn({ nodePath: process.execPath, nodeArguments: [...nodeArguments, '-e', script] })
    const limit = setTimeout(() => loose.kill(), SCRIPT_MS)
    const [code, signal] = (await once(loose.child, 'exit')) as [number | null, NodeJS.Signals | null]
    clearTimeout(limit)
    if (name === 'leave a core dump') return readdirSync(folder).some((file) => file.startsWith('core'))
    return loose.endOf(code, signal).exitCode === DONE
  } finally {
    other?.kill()
    rmSync(folder, { recursive: true })
  }
}

async function startOther(sandbox: ProcessSandbox): Promise<SandboxedProcess> {
  const script = `process.stderr.write('up'); setInterval(() => {}, 1000)`
  const other = sandbox.spawn({ nodePath: process.execPath, nodeArguments: ['-e', script] })
  if (other.child.stderr === null) throw new Error('The other host has no stderr.')
  await once(other.child.stderr, 'data')
  return other
}

/**
 * Lets programs that are started from here leave core dumps, of a few pages. @returns whether they would be files in the
 * working folder; else the system gives them to a program of its own
 */
export function allowCoreDumps(): boolean {
  const pattern = '/proc/sys/kernel/core_pattern'
  if (!existsSync(pattern) || /^[|/]/.test(readFileSync(pattern, 'utf8'))) return false
  return spawnSync('prlimit', ['--pid', String(process.pid), '--core=1000000:']).status === 0
}
