import { readdirSync } from 'node:fs'
import { parseStat, readProc } from './process-table.ts'

/** A thread of a process at one moment. */
export interface ThreadReading {
  readonly id: number
  /** As the system has it: at most 15 characters. */
  readonly name: string
  readonly isMain: boolean
  readonly cpuSeconds: number
  /** How often it went to sleep, and so was woken. */
  readonly voluntarySwitches: number
  /** How often another took its core. */
  readonly involuntarySwitches: number
}

/** CPU time of the threads of a process that live, in seconds, by what they are. */
export interface ThreadTimes {
  /** The main thread: the event loop, and what V8 does on it. */
  readonly main: number
  /** V8's helpers: garbage collection and compilation on the side, for all isolates together. */
  readonly v8Helpers: number
  /** All others: the threads on which isolates run, and libuv's. */
  readonly others: number
}

/** Which threads are V8's, by their names. */
const V8_HELPER = /V8Worker|DelayedTask/

export function isV8Helper({ name }: Pick<ThreadReading, 'name'>): boolean {
  return V8_HELPER.test(name)
}

/** The threads that live. Empty where the system does not tell: anything but Linux. */
export function readThreads(pid: number): ThreadReading[] {
  return threadIds(pid).flatMap((id) => {
    const stat = readProc(pid, `task/${id}/stat`)
    if (stat === undefined) return []
    // Finer than the hundredths of a second in `stat`, which add up over threads.
    const exactSeconds = Number.parseInt(readProc(pid, `task/${id}/schedstat`) ?? '', 10) / 1e9
    const status = readProc(pid, `task/${id}/status`) ?? ''
    return {
      id,
      name: threadName(stat),
      isMain: id === pid,
      cpuSeconds: Number.isNaN(exactSeconds) ? parseStat(stat).cpuSeconds : exactSeconds,
      voluntarySwitches: countIn(status, 'voluntary_ctxt_switches'),
      involuntarySwitches: countIn(status, 'nonvoluntary_ctxt_switches'),
    }
  })
}

/** Undefined where the system does not tell: anything but Linux. A thread that ended takes what it used with it. */
export function readThreadTimes(pid: number): ThreadTimes | undefined {
  const times = { main: 0, v8Helpers: 0, others: 0 }
  for (const thread of readThreads(pid)) {
    const kind = thread.isMain ? 'main' : isV8Helper(thread) ? 'v8Helpers' : 'others'
    times[kind] += thread.cpuSeconds
  }
  return times.main > 0 ? times : undefined
}

function threadIds(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number)
  } catch {
    return []
  }
}

/** Names may hold parentheses. */
function threadName(stat: string): string {
  return stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
}

function countIn(status: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s*(\\d+)`, 'm').exec(status)?.[1] ?? 0)
}
