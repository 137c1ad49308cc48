import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import type { Duplex } from 'node:stream'
import { CarpoolError } from '@carpool/core'
import type { Setup } from '@carpool/wire'

/** How to start a host process. */
export interface HostProgram {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  /** The program itself, which the process reads on its standard input. */
  readonly input?: string
  /** What starts it with less than the server may do; absent: it is started as it is. */
  readonly launcher?: HostLauncher
  readonly setup: Setup
  /** The guest runtime's script. */
  readonly runtime: string
}

/** A host process that was started. Others may stand between it and the server, as the programs of a sandbox do. */
export interface HostHandle {
  /** The process that was started: it ends when the host does. */
  readonly child: ChildProcess
  /** The host process itself; while a sandbox starts it, the process that becomes it. 0 if nothing was started. */
  pid(): number
  /** How the host ended, derived from how the child did. */
  endOf(exitCode: number | null, signal: NodeJS.Signals | null): ProcessEnd
  /** Ends it at once. */
  kill(): void
}

/** What starts host processes with less than the server may do. */
export interface HostLauncher {
  /** The child has the socket as descriptor 3. @throws Error of the system if the process cannot be started */
  spawn(program: HostCommand): HostHandle
}

export interface HostCommand {
  /** Path of the Node.js binary. */
  readonly nodePath: string
  readonly nodeArguments: readonly string[]
  /** What the process reads on its standard input. Default: nothing. */
  readonly input?: string
}

/** A host with the socket to it. */
export interface SpawnedHost extends HostHandle {
  readonly socket: Duplex
}

/** @throws CarpoolError `no-host` if the process cannot be started, as when the system has no descriptors or memory left */
export function spawnHost(command: HostCommand, launcher: HostLauncher = DIRECT_LAUNCHER): SpawnedHost {
  let handle: HostHandle
  try {
    handle = launcher.spawn(command)
  } catch (cause) {
    throw new CarpoolError('no-host', 'A host process could not be started.', { cause })
  }
  const socket = handle.child.stdio?.[3]
  if (socket !== undefined && socket !== null) return { ...handle, socket: socket as Duplex }
  // Without descriptors left, Node.js returns a child without streams, and emits the reason as an error event.
  handle.child.once('error', () => {})
  throw new CarpoolError('no-host', 'A host process could not be started.')
}

/** Starts the program as it is. */
const DIRECT_LAUNCHER: HostLauncher = {
  spawn: ({ nodePath, nodeArguments, input }) => {
    const child = spawn(nodePath, nodeArguments, { stdio: ['pipe', 'ignore', 'pipe', 'pipe'], env: {} })
    // A process that has ended by now has not read it.
    child.stdin?.on('error', () => {}).end(input)
    return {
      child,
      pid: () => child.pid ?? 0,
      endOf: (exitCode, signal) => ({ exitCode, signal }),
      kill: () => void child.kill('SIGKILL'),
    }
  },
}

/** How a process ended, as its parent sees it. */
export interface ProcessEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** The system has ended it because its control group had no memory left. */
  readonly isOutOfMemory?: boolean
}

/** What V8, the C library and the processor end a process with. A SIGKILL comes from somebody else: an operator, or us. */
const CRASH_SIGNALS: ReadonlyMap<NodeJS.Signals, number> = new Map([
  ['SIGILL', 4],
  ['SIGTRAP', 5],
  ['SIGABRT', 6],
  ['SIGBUS', 7],
  ['SIGFPE', 8],
  ['SIGSEGV', 11],
])
const SIGNALED = 128

/** Whether code in the process brought it down. A parent in between turns a signal into an exit code. */
export function isCrash({ exitCode, signal }: ProcessEnd): boolean {
  if (signal !== null) return CRASH_SIGNALS.has(signal)
  return exitCode !== null && CRASH_SIGNALS.values().some((number) => exitCode === SIGNALED + number)
}

export interface ProcessUsage {
  /** CPU time of all its threads since it started. */
  readonly cpuUs: number
  readonly memoryBytes: number
  /** CPU time of its first thread since it started, in ns; undefined where the system does not tell. */
  readonly firstThreadNs?: number | undefined
}

/** What the kernel's clock ticks are, in µs; 100 a second on every Linux that Node.js runs on. */
const TICK_US = 10_000

/**
 * What a process has used, as the system counts it: also of one whose event loop is stuck and that reports nothing itself.
 * Undefined if there is no such process, or no /proc.
 */
export function processUsage(pid: number): ProcessUsage | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field, the program's name, may hold anything but ends with the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [user, system] = [fields[11], fields[12]].map(Number)
    const residentKb = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    const cpuUs = (user! + system!) * TICK_US
    return { cpuUs, memoryBytes: Number(residentKb ?? 0) * 1024, firstThreadNs: firstThreadNs(pid) }
  } catch {
    return undefined
  }
}

function firstThreadNs(pid: number): number | undefined {
  try {
    // For a thread, and a process stands for its first: ns that it ran, ns that it waited for a core, time slices.
    const [ranNs] = readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ').map(Number)
    // Where the system keeps no such figures, it has zeros there.
    return ranNs === undefined || !(ranNs > 0) ? undefined : ranNs
  } catch {
    return undefined
  }
}

/** Steps of niceness: each is a factor of 1.25 (Linux, sched(7)). */
export type Niceness = 5 | 10
/** A share of a busy core that is a tenth of others'. */
const LOW = 10
/** The smallest share that there is. */
const LOWEST = 19

/** Gives a process less of a busy machine. Threads that it starts later inherit that. Default: a tenth of what others get. */
export function demoteProcess(pid: number, niceness: Niceness = LOW): void {
  demoteGroup(pid, niceness)
  demote(pid, niceness, () => true)
}

/**
 * The same for one in which a thread is stuck, which would take a core from everybody. Its first thread, which answers what
 * else is under way in it, keeps its priority.
 */
export function demoteStuck(pid: number): void {
  demoteGroup(pid, LOW)
  demote(pid, LOWEST, (thread) => thread !== pid)
}

/** Without effect where there is no /proc or no right to do so. Never taken back: that needs rights that a server lacks. */
function demote(pid: number, niceness: number, isMeant: (thread: number) => boolean): void {
  for (const thread of threadsOf(pid)) {
    if (!isMeant(thread)) continue
    try {
      setPriority(thread, niceness)
    } catch {
      // It has ended meanwhile.
    }
  }
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}

/**
 * Where the system gives each session an equal share (sched(7): autogroups), as it does unless control groups do, niceness of
 * threads counts only within the session.
 */
function demoteGroup(pid: number, niceness: Niceness): void {
  try {
    const { name, niceness: before } = groupOf(pid)
    // Without a sandbox a host is of the server's own session.
    if (before >= niceness || name === groupOf('self').name) return
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness), { flag: 'r+' })
  } catch {
    // There are no such groups, or the process has ended.
  }
}

/** The group, which is told as in "/autogroup-123 nice 0". */
function groupOf(pid: number | 'self'): { readonly name: string | undefined; readonly niceness: number } {
  const [name, , niceness] = readFileSync(`/proc/${pid}/autogroup`, 'utf8').split(' ')
  return { name, niceness: Number(niceness) }
}
