import { once } from 'node:events'
import { createSocket } from 'node:dgram'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostGroup } from './control-groups.ts'
import { ATTEMPTS, CANARY_SIGNAL as SIGNAL } from './probe.js'
import { contentOf, killGroup, oneLine, startOf } from './processes.ts'
import type { ProcessSandbox, SandboxedProcess } from './spawn.ts'

/** What there is outside of the sandbox to be reached. All of it was put there for that. */
export interface Canaries {
  /** A file that everyone may read, */
  readonly file: string
  /** in a folder where everyone may write. */
  readonly folder: string
  /** Of listeners on 127.0.0.1, */
  readonly tcpPort: number
  readonly udpPort: number
  /** and of UNIX sockets: one with a path, */
  readonly socketPath: string
  /** and one with a name in the abstract namespace, from the null character on. */
  readonly socketName: string
  /** The process that put them there, by its id where it runs; that may be another's where the probe runs, */
  readonly pid: number
  /** and so when it was started, in clock ticks since the machine was. */
  readonly startedTicks: string
}

export type AttemptName =
  | 'read a file'
  | 'list a folder'
  | 'write a file'
  | 'read the environment of the server'
  | 'read the memory of the server'
  | 'see the processes of others'
  | 'signal the server'
  | 'connect to a TCP port'
  | 'send a UDP packet'
  | 'connect to a UNIX socket'
  | 'connect to an abstract UNIX socket'
  | 'run a program'
  | 'run a shell'
  | 'start a thread'
export const ATTEMPT_NAMES = Object.keys(ATTEMPTS) as readonly AttemptName[]
export const CANARY_SIGNAL: NodeJS.Signals = SIGNAL
/** `done`, or the code of the error. */
export type AttemptResults = Readonly<Partial<Record<AttemptName, string>>>

/** What a process knows of its own sandbox. What it cannot find out is absent. */
export interface OwnFacts {
  readonly uid: number
  readonly gid: number
  readonly groups: readonly number[]
  /** Names of the variables in its environment. */
  readonly environment: readonly string[]
  /** What its descriptors are open on: sockets, pipes, files. */
  readonly openFiles: readonly string[]
  readonly namespaces: Readonly<Record<string, string>>
  /** By the names of Node.js' report, as `core_file_size_blocks`. */
  readonly limits: Readonly<Record<string, number | 'unlimited'>>
  readonly hasNoNewPrivileges: boolean
  /** Permitted capabilities, as a bit set in hexadecimal. */
  readonly capabilities?: string | undefined
}

/** What a probe is to do. */
export interface ProbeOrder {
  readonly canaries: Canaries
  readonly attempts: readonly AttemptName[]
  /** Whether to look at itself; Node.js' permission model does not let it. */
  readonly wantsFacts: boolean
}

export interface ProbeAnswer {
  readonly results: AttemptResults
  readonly facts?: OwnFacts | undefined
}

/** What a probe found out, or why it could not run at all. */
export type ProbeResult = ProbeFindings | { readonly error: string; readonly isLate?: boolean }

interface ProbeFindings {
  readonly answer: ProbeAnswer
  readonly groups: readonly string[]
  readonly groupFolders: HostGroup['folders']
}

/** Beside this file, also when both are packed. */
const PROBE_FILE = join(import.meta.dirname, 'probe.js')
/** How long a probe may take, in ms. Programs that it starts may take a while on a machine that is busy. */
const PROBE_MS = 20_000
/**
 * How long a signal may take that the probe says it has sent, in ms. A server whose id another has in the sandbox, such as 1,
 * waits for all of it.
 */
const SIGNAL_MS = 500
const MAX_STDERR_CHARACTERS = 4_096

/**
 * Starts a probe in a sandbox exactly as a host is started, and has it try what a host should not be able to do.
 * @param limitMs how long it may take; then it and all that it has started is ended
 */
export async function runProbe(
  sandbox: ProcessSandbox,
  { nodePath, nodeArguments }: { readonly nodePath: string; readonly nodeArguments: readonly string[] },
  order: ProbeOrder,
  limitMs = PROBE_MS,
): Promise<ProbeResult> {
  const input = `${readFileSync(PROBE_FILE, 'utf8')}\nawait answerOrders()`
  let probe: SandboxedProcess
  try {
    probe = sandbox.spawn({ nodePath, nodeArguments: [...nodeArguments, '--input-type=module', '-'], input })
  } catch (cause) {
    return { error: startError(cause) }
  }
  const { child } = probe
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()))
  const { promise: signalled, resolve: onSignal } = Promise.withResolvers<unknown>()
  process.on(CANARY_SIGNAL, onSignal)
  let isLate = false
  let limit: NodeJS.Timeout | undefined
  const late = new Promise<ProbeResult>((resolve) => {
    limit = setTimeout(() => {
      isLate = true
      resolve({ error: `It did not answer within ${limitMs / 1000} s.`, isLate })
    }, limitMs)
  })
  try {
    const result = await Promise.race([answerOf(probe, order), errorOf(probe), late]).finally(() => clearTimeout(limit))
    if ('error' in result || result.answer.results['signal the server'] !== 'done') return result
    // Any thread of this process may take the signal, and that one may wait for a core longer than the answer takes.
    const signal = await Promise.race([signalled, delay(SIGNAL_MS, 'none', { ref: false })])
    return signal === 'none' ? withoutSignal(result) : result
  } finally {
    process.off(CANARY_SIGNAL, onSignal)
    probe.kill()
    // What hangs in front of the probe may have started others, and need not end at once.
    if (isLate) killGroup(child)
    else await (child.pid === undefined ? undefined : ended)
  }
}

async function answerOf(probe: SandboxedProcess, order: ProbeOrder): Promise<ProbeResult> {
  const socket = probe.child.stdio[3] as Duplex | null | undefined
  if (!socket) return new Promise(() => {})
  const lines = createInterface({ input: socket })
  // It breaks when the process ends, which errorOf() reports.
  socket.on('error', () => {})
  lines.on('error', () => {})
  socket.write(`${JSON.stringify(order)}\n`)
  const line = await new Promise<string>((resolve) => lines.once('line', resolve))
  const groups = contentOf(`/proc/${probe.pid()}/cgroup`).split('\n')
  lines.close()
  return { answer: JSON.parse(line) as ProbeAnswer, groups, groupFolders: probe.groups }
}

/** The id of this process may be that of another where the probe runs: then that got the signal. */
function withoutSignal(result: ProbeFindings): ProbeResult {
  const results = { ...result.answer.results, 'signal the server': 'ESRCH' }
  return { ...result, answer: { ...result.answer, results } }
}

/** Resolves when the process ends without an answer. */
async function errorOf(probe: SandboxedProcess): Promise<ProbeResult> {
  const { child } = probe
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    if (stderr.length < MAX_STDERR_CHARACTERS) stderr += chunk
  })
  return new Promise((resolve) => {
    child.once('error', (cause) => resolve({ error: startError(cause) }))
    child.once('close', (code, signal) => {
      const end = probe.endOf(code, signal)
      resolve({ error: oneLine(stderr) || `It ended with ${end.signal ?? `exit code ${end.exitCode}`}.` })
    })
  })
}

function startError(cause: unknown): string {
  return `It could not be started: ${(cause as NodeJS.ErrnoException).code ?? 'it failed'}.`
}

let lastNumber = 0

/** Puts up what a probe is to try to reach: files, listeners, and this process itself. The caller closes them. */
export async function openCanaries(): Promise<{ readonly canaries: Canaries; close(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-canary-'))
  // Open to everyone: only what keeps a host from getting there at all is to stop it.
  chmodSync(folder, 0o777)
  const file = join(folder, 'canary')
  writeFileSync(file, 'canary', { mode: 0o644 })
  const socketPath = join(folder, 'socket')
  const socketName = `\0carpool-canary-${process.pid}-${++lastNumber}`
  const udp = createSocket('udp4')
  udp.on('message', (message, { port, address }) => udp.send(message, port, address))
  udp.on('error', () => {})
  const hangUp = (socket: Socket): unknown => socket.destroy()
  const [tcp, unix, abstract] = [createServer(hangUp), createServer(hangUp), createServer(hangUp)] as const
  const close = (): void => {
    for (const server of [tcp, unix, abstract]) server.close()
    udp.close()
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const listeners = [
      udp.bind(0, '127.0.0.1'),
      tcp.listen(0, '127.0.0.1'),
      unix.listen(socketPath),
      // Only Linux has such names.
      ...(process.platform === 'linux' ? [abstract.listen(socketName)] : []),
    ]
    await Promise.all(listeners.map(async (listener) => once(listener, 'listening')))
    chmodSync(socketPath, 0o777)
    const { port: tcpPort } = tcp.address() as AddressInfo
    const server = { pid: process.pid, startedTicks: startOf('self') }
    return { canaries: { folder, file, tcpPort, udpPort: udp.address().port, socketPath, socketName, ...server }, close }
  } catch (cause) {
    close()
    throw cause
  }
}
