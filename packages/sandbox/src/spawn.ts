import { spawn, type ChildProcess } from 'node:child_process'
import { openSync } from 'node:fs'
import { constants } from 'node:os'
import type { Writable } from 'node:stream'
import { processesBefore, sandboxCommand, type SandboxedProgram, type SandboxPlan } from './command.ts'
import type { HostGroup, HostGroups } from './control-groups.ts'
import { cover, descendant, inheritableDescriptors, killNow, startOf, type Stdio } from './processes.ts'

/** A process in its sandbox. Others may stand between it and the server. */
export interface SandboxedProcess {
  /** The process that was started; it ends with the sandboxed one, which ends with it. Its `stdio[3]` is the socket. */
  readonly child: ChildProcess
  /**
   * The sandboxed process itself, as this one sees it; while it is on its way, the one that is becoming it. 0 if nothing was
   * started.
   */
  pid(): number
  /** How the sandboxed process ended, by what its child did: bubblewrap reports a signal by an exit code, as a shell does. */
  endOf(exitCode: number | null, signal: NodeJS.Signals | null): ProcessEnd
  /** Ends it at once. */
  kill(): void
  /** The folders of its control groups, by controller. */
  readonly groups: HostGroup['folders']
}

interface ProcessEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  /** The system has ended it because its control group had no memory left. */
  readonly isOutOfMemory?: boolean
}

/** Starts processes, each in a sandbox of its own. */
export interface ProcessSandbox {
  /** @throws Error of the system if the process cannot be started */
  spawn(program: SandboxedProgram): SandboxedProcess
}

/**
 * @param groups control groups to put processes in; absent: none
 * @param onProblem gets a sentence if a process had to be started without its control groups
 */
export function processSandbox(
  plan: SandboxPlan,
  { groups, onProblem }: { groups?: HostGroups | undefined; onProblem?: ((text: string) => void) | undefined } = {},
): ProcessSandbox {
  const generations = processesBefore(plan)
  // Node.js closes nothing for its children, so what others left open here is covered up.
  const leaks = inheritableDescriptors()
  const nothing = leaks.length > 0 ? openSync('/dev/null', 'r+') : undefined

  const openGroup = (): HostGroup | undefined => {
    if (groups === undefined || groups.controllers.size === 0 || plan.tools.sh === undefined) return undefined
    try {
      return groups.open()
    } catch (cause) {
      onProblem?.(`A host was started without its control groups: ${(cause as NodeJS.ErrnoException).code ?? 'it failed'}.`)
      return undefined
    }
  }

  return {
    spawn(program) {
      const group = openGroup()
      const joins = group?.descriptors ?? []
      const { command, args, options, filterFd } = sandboxCommand(program, plan, joins.length)
      const stdio: Stdio = [program.input === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe', 'pipe', ...joins]
      if (filterFd !== undefined) stdio[filterFd] = 'pipe'
      if (nothing !== undefined) cover(stdio, leaks, nothing)
      let child: ChildProcess
      try {
        child = spawn(command, args, { ...options, stdio })
      } catch (cause) {
        group?.remove()
        throw cause
      } finally {
        group?.close()
      }
      const state = { isOutOfMemory: false }
      child.once(child.pid === undefined ? 'error' : 'exit', () => {
        state.isOutOfMemory = group?.hasRunOut() ?? false
        group?.remove()
      })
      if (filterFd !== undefined) feed(child.stdio[filterFd] as Writable | null | undefined, plan.filter)
      if (program.input !== undefined) feed(child.stdin, program.input)
      return sandboxed(child, generations, group?.folders ?? new Map(), state)
    },
  }
}

/** Writes what the child reads to the end: bubblewrap its filter before it starts the program, Node.js the program. */
function feed(pipe: Writable | null | undefined, content: Uint8Array | string | undefined): void {
  // A program that has ended by now has not read it.
  pipe?.on('error', () => {})
  pipe?.end(content, () => pipe.destroy())
}

/** Exit codes above it stand for a signal. */
const SIGNALED = 128
/** By number; of two names for one, the first is the usual. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .map(([name, number]) => [number, name as NodeJS.Signals] as const)
    .toReversed(),
)
/** How long the process in front may take to report the end of the one behind it, in ms. */
const REPORT_MS = 250

/** @param generations how many processes stand between this one and the sandboxed one, the child among them */
function sandboxed(
  child: ChildProcess,
  generations: number,
  groups: HostGroup['folders'],
  state: { readonly isOutOfMemory: boolean },
): SandboxedProcess {
  let found: { readonly pid: number; readonly start: string } | undefined
  const find = (): number => {
    if (found !== undefined || child.pid === undefined) return found?.pid ?? 0
    const { pid, isIt } = descendant(child.pid, generations)
    const start = isIt && generations > 0 ? startOf(pid) : ''
    if (start !== '') found = { pid, start }
    return pid
  }
  return {
    child,
    groups,
    pid: find,
    endOf(exitCode, signal) {
      const reported = generations > 0 && exitCode !== null ? SIGNALS.get(exitCode - SIGNALED) : undefined
      const end = reported === undefined ? { exitCode, signal } : { exitCode: null, signal: reported }
      return state.isOutOfMemory ? { ...end, isOutOfMemory: true } : end
    },
    kill() {
      if (generations === 0) return void child.kill('SIGKILL')
      find()
      // The process itself, and not the one in front of it: that is yet to report how this one ended, which it may have done by
      // now.
      if (found !== undefined && startOf(found.pid) === found.start) killNow(found.pid)
      setTimeout(() => child.kill('SIGKILL'), REPORT_MS).unref()
    },
  }
}
