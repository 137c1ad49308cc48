import { readdirSync } from 'node:fs'
import { parseStat, readProc } from './process-table.ts'

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

/** Undefined where the system does not tell: anything but Linux. A thread that ended takes what it used with it. */
export function readThreadTimes(pid: number): ThreadTimes | undefined {
  const times = { main: 0, v8Helpers: 0, others: 0 }
  for (const thread of threadIds(pid)) {
    const stat = readProc(pid, `task/${thread}/stat`)
    if (stat === undefined) continue
    const { cpuSeconds } = parseStat(stat)
    // Finer than the hundredths of a second in `stat`, which add up over threads.
    const exactSeconds = Number.parseInt(readProc(pid, `task/${thread}/schedstat`) ?? '', 10) / 1e9
    const kind = thread === pid ? 'main' : V8_HELPER.test(threadName(stat)) ? 'v8Helpers' : 'others'
    times[kind] += Number.isNaN(exactSeconds) ? cpuSeconds : exactSeconds
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
