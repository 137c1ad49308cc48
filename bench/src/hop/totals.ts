import { median } from '../lib/statistics.ts'
import { readThreads, type ThreadReading } from '../lib/thread-table.ts'
import { roleOf, THREAD_ROLES, type ProcessName, type ThreadRole } from './stages.ts'

/** What the threads of one role used for one call. */
export interface ThreadFigures {
  readonly process: ProcessName
  readonly role: ThreadRole
  readonly microsPerCall: number
  /** How often one went to sleep, and so had to be woken. */
  readonly wakeUpsPerCall: number
  /** How often another took its core. */
  readonly preemptionsPerCall: number
}

/** The threads of a server and its host at one moment. */
export type Readings = Readonly<Record<ProcessName, readonly ThreadReading[]>>

/** @throws Error where the system does not tell of threads */
export function readBoth(pids: Readonly<Record<ProcessName, number>>): Readings {
  const readings = { server: readThreads(pids.server), host: readThreads(pids.host) }
  if (readings.server.length === 0 || readings.host.length === 0)
    throw new Error('The system does not tell of threads, or a process is gone.')
  return readings
}

/** What was used between two readings, by role. A thread that ended between them takes what it used with it. */
export function figuresBetween(before: Readings, after: Readings, calls: number): ThreadFigures[] {
  return processNames().flatMap((process) => {
    const earlier = new Map(before[process].map((thread) => [thread.id, thread]))
    return THREAD_ROLES[process].map((role) => {
      const threads = after[process].filter((thread) => roleOf(process, thread) === role)
      const sum = (value: (thread: ThreadReading) => number): number =>
        threads.reduce((total, thread) => {
          const was = earlier.get(thread.id)
          return total + value(thread) - (was === undefined ? 0 : value(was))
        }, 0)
      return {
        process,
        role,
        microsPerCall: (sum(({ cpuSeconds }) => cpuSeconds) * 1e6) / calls,
        wakeUpsPerCall: sum(({ voluntarySwitches }) => voluntarySwitches) / calls,
        preemptionsPerCall: sum(({ involuntarySwitches }) => involuntarySwitches) / calls,
      }
    })
  })
}

/** The medians over rounds. */
export function mediansOf(rounds: ReadonlyArray<readonly ThreadFigures[]>): ThreadFigures[] {
  const [first = []] = rounds
  return first.map(({ process, role }, index) => {
    const over = (value: (figures: ThreadFigures) => number): number => median(rounds.map((figures) => value(figures[index]!)))
    return {
      process,
      role,
      microsPerCall: over(({ microsPerCall }) => microsPerCall),
      wakeUpsPerCall: over(({ wakeUpsPerCall }) => wakeUpsPerCall),
      preemptionsPerCall: over(({ preemptionsPerCall }) => preemptionsPerCall),
    }
  })
}

function processNames(): ProcessName[] {
  return Object.keys(THREAD_ROLES) as ProcessName[]
}
