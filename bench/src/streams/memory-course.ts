import { readProc } from '../lib/process-table.ts'
import type { Progress } from './transfer.ts'

/** What a process had resident in the course of a transfer, in bytes. */
export interface MemoryCourse {
  readonly role: 'server' | 'host'
  readonly pid: number
  readonly startBytes: number
  readonly peakBytes: number
  /**
   * By how much the peak of the second half of the bytes is above that of the first half: what does not hold on to bytes has
   * none.
   */
  readonly growthBytes: number
}

export type WatchedProcess = Pick<MemoryCourse, 'role' | 'pid'>

export interface MemoryWatch {
  stop(): readonly MemoryCourse[]
}

const LOOK_MS = 20
const PAGE_BYTES = 4096

/**
 * Looks at processes until it is stopped. It only reads a number of each, which costs microseconds. 0 where there is no /proc.
 */
export function watchMemory(processes: readonly WatchedProcess[], progress: Progress, bytes: number): MemoryWatch {
  const courses = processes.map((watched) => ({ ...watched, startBytes: residentBytes(watched.pid), peaks: [0, 0] }))
  const look = (): void => {
    const half = progress.movedBytes * 2 < bytes ? 0 : 1
    for (const { pid, peaks } of courses) peaks[half] = Math.max(peaks[half] ?? 0, residentBytes(pid))
  }
  look()
  const timer = setInterval(look, LOOK_MS)
  return {
    stop: () => {
      clearInterval(timer)
      look()
      return courses.map(({ role, pid, startBytes, peaks: [first = 0, second = 0] }) => ({
        role,
        pid,
        startBytes,
        peakBytes: Math.max(first, second),
        growthBytes: second - first,
      }))
    },
  }
}

function residentBytes(pid: number): number {
  return Number(readProc(pid, 'statm')?.split(' ')[1] ?? 0) * PAGE_BYTES
}
