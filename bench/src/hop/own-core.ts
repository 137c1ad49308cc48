import { spawnSync } from 'node:child_process'
import { readProc } from '../lib/process-table.ts'
import { readThreads } from '../lib/thread-table.ts'

/** What V8 calls the thread that has a profile's samples taken. */
const SAMPLER = 'v8:ProfEvntProc'

/**
 * Gives the main thread of a process a core to itself, as far as these processes are concerned, until it is disposed. Samples are
 * taken by the clock on the wall: a thread that others push off its core, as they do when it wakes them, would seem to spend that
 * time in the call that woke them. The thread that has the samples taken is there too, for elsewhere it would come too late.
 *
 * @param processes all that works for the load, this process besides
 * @returns undefined where that cannot be done: with one core, or without `taskset`
 */
export function giveOwnCore(profiled: number, processes: readonly number[]): Disposable | undefined {
  const cores = listedCores(/^Cpus_allowed_list:\s*(\S+)$/m.exec(readProc(process.pid, 'status') ?? '')?.[1] ?? '')
  const [own, ...others] = cores
  if (own === undefined || others.length === 0) return undefined
  const isDone =
    [process.pid, ...processes].every((pid) => setCores(['--all-tasks', '--pid'], others, pid)) &&
    ownersOf(profiled).every((id) => setCores(['--pid'], [own], id))
  if (!isDone) return undefined
  return { [Symbol.dispose]: () => [process.pid, ...processes].forEach((pid) => setCores(['--all-tasks', '--pid'], cores, pid)) }
}

function ownersOf(pid: number): number[] {
  return readThreads(pid).flatMap(({ id, name, isMain }) => (isMain || name === SAMPLER ? id : []))
}

/** Reads `0-2,5`. */
export function listedCores(text: string): number[] {
  return text
    .split(',')
    .filter((part) => part !== '')
    .flatMap((part) => {
      const [first = 0, last = first] = part.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, index) => first + index)
    })
}

function setCores(flags: readonly string[], cores: readonly number[], id: number): boolean {
  return spawnSync('taskset', [...flags, '--cpu-list', cores.join(','), String(id)], { stdio: 'ignore' }).status === 0
}
