import { spawn, type ChildProcess } from 'node:child_process'
import { openSync } from 'node:fs'
import { constants } from 'node:os'
import type { Writable } from 'node:stream'
import { cageCommand } from './cage-command.ts'
import { processesBefore, type CagedProgram, type CagePlan } from './cage-plan.ts'
import type { HostGroup, HostGroups } from './cgroup/host-groups.ts'
import { cover, inheritableDescriptors, type Stdio } from './inherited-descriptors.ts'
import { descendant, startedTicks } from './process-tree.ts'

/** A process in its cage. Others may stand between it and the server. */
export interface CagedProcess {
  /** The process that was started; it ends with the caged one, which ends with it. Its `stdio[3]` is the socket. */
  readonly child: ChildProcess
  /** The caged process itself, as this one sees it; while it is on its way, the one that is becoming it. 0 if nothing was started. */
  pid(): number
  /** How the caged process ended, by what its child did: bubblewrap tells of a signal by an exit code, as a shell does. */
  endOf(exitCode: number | null, signal: NodeJS.Signals | null): ProcessEnd
  /** Ends it at once. */
  kill(): void
  /** The folders of its control groups, by controller. */
  readonly groups: HostGroup['folders']
}

export interface ProcessEnd {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Cage {
  readonly plan: CagePlan
  /** @throws Error of the system if the process cannot be started */
  spawn(program: CagedProgram): CagedProcess
}

const NO_FOLDERS: HostGroup['folders'] = new Map()
/** Of exit codes that stand for a signal. */
const SIGNALED = 128
/** By number; of two names for one, the first is the usual. */
const SIGNALS = new Map(
  Object.entries(constants.signals)
    .map(([name, number]) => [number, name as NodeJS.Signals] as const)
    .toReversed(),
)

/**
 * @param groups control groups to put processes in; absent: none
 * @param onProblem told in a sentence if a process had to be started without its control groups
 */
export function createCage(
  plan: CagePlan,
  { groups, onProblem }: { groups?: HostGroups; onProblem?: (text: string) => void } = {},
): Cage {
  const generations = processesBefore(plan)
  // Node.js closes nothing for its children, so what others left open here is covered up.
  const leaks = inheritableDescriptors()
  const nothing = leaks.length > 0 ? openSync('/dev/null', 'r+') : undefined

  const openGroups = (): HostGroup | undefined => {
    if (groups === undefined || groups.controllers.size === 0 || plan.tools.sh === undefined) return undefined
    try {
      return groups.open()
    } catch (cause) {
      onProblem?.(`A host was started without its control groups: ${(cause as NodeJS.ErrnoException).code ?? 'it failed'}.`)
      return undefined
    }
  }

  return {
    plan,
    spawn(program) {
      const group = openGroups()
      const { command, args, options, filterFd } = cageCommand(program, plan, group?.descriptors.length)
      const stdio: Stdio = [
        program.input === undefined ? 'ignore' : 'pipe',
        'ignore',
        'pipe',
        'pipe',
        ...(group?.descriptors ?? []),
      ]
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
      child.once(child.pid === undefined ? 'error' : 'exit', () => group?.remove())
      if (filterFd !== undefined) feed(child.stdio[filterFd] as Writable | null | undefined, plan.filter)
      if (program.input !== undefined) feed(child.stdin, program.input)
      return caged(child, generations, group?.folders ?? NO_FOLDERS)
    },
  }
}

/** Writes what the child reads to the end: bubblewrap its filter before it starts the program, Node.js the program. */
function feed(pipe: Writable | null | undefined, content: Uint8Array | string | undefined): void {
  // A program that has ended by now has not read it.
  pipe?.on('error', () => {})
  pipe?.end(content, () => pipe.destroy())
}

function caged(child: ChildProcess, generations: number, groups: HostGroup['folders']): CagedProcess {
  let found: { readonly pid: number; readonly started: string } | undefined
  const find = (): number => {
    if (found !== undefined || child.pid === undefined) return found?.pid ?? 0
    const { pid, isIt } = descendant(child.pid, generations)
    const started = isIt && generations > 0 ? startOf(pid) : ''
    if (started !== '') found = { pid, started }
    return pid
  }
  return {
    child,
    groups,
    pid: find,
    endOf(exitCode, signal) {
      const told = generations > 0 && exitCode !== null ? SIGNALS.get(exitCode - SIGNALED) : undefined
      return told === undefined ? { exitCode, signal } : { exitCode: null, signal: told }
    },
    kill() {
      if (generations === 0) return void child.kill('SIGKILL')
      find()
      // The process itself, and not the one in front of it: that is yet to tell how this one ended, which it may have done by now.
      if (found !== undefined && startOf(found.pid) === found.started) end(found.pid)
      setTimeout(() => child.kill('SIGKILL'), IN_FRONT_MS).unref()
    },
  }
}

/** How long whoever stands in front of a process has to tell of its end, in ms. */
const IN_FRONT_MS = 250

/** Empty if there is no such process. */
function startOf(pid: number): string {
  try {
    return startedTicks(pid)
  } catch {
    return ''
  }
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It is gone.
  }
}
