import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface ProcessReading {
  readonly pid: number
  readonly parentPid: number
  /** User and system time of the process itself, since it started. */
  readonly cpuSeconds: number
  /** The same of its children that have ended, and of theirs; 0 where the system does not tell. */
  readonly endedChildrenCpuSeconds: number
  /** Absent on Linux, where {@link readMemory} knows more. */
  readonly residentBytes?: number
}

/** Unit of the times in /proc: Linux shows them to programs in hundredths of a second, whatever it counts in itself. */
const TICKS_PER_SECOND = 100

/** Every process of the machine. */
export function readProcesses(): ProcessReading[] {
  if (process.platform !== 'linux') {
    return parsePs(execFileSync('ps', ['-axo', 'pid=,ppid=,rss=,time='], { encoding: 'utf8' }))
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const stat = readProc(Number(pid), 'stat')
      return stat === undefined ? [] : [parseStat(stat)]
    })
}

/** A file of a process's folder in /proc; undefined if the process is gone or not ours to look at. */
export function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(join('/proc', String(pid), file), 'utf8')
  } catch {
    return undefined
  }
}

/** Reads /proc/<pid>/stat. The program's name stands in parentheses and may itself hold spaces and parentheses. */
export function parseStat(stat: string): ProcessReading {
  const pid = Number.parseInt(stat, 10)
  const [, parentPid = 0, , , , , , , , , , user = 0, system = 0, childUser = 0, childSystem = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  return {
    pid,
    parentPid,
    cpuSeconds: (user + system) / TICKS_PER_SECOND,
    endedChildrenCpuSeconds: (childUser + childSystem) / TICKS_PER_SECOND,
  }
}

/** Reads the output of `ps -axo pid=,ppid=,rss=,time=`, where the time is `[[dd-]hh:]mm:ss[.ff]`. */
export function parsePs(output: string): ProcessReading[] {
  return output
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [pid, parentPid, residentKib, time = ''] = line.trim().split(/\s+/)
      return {
        pid: Number(pid),
        parentPid: Number(parentPid),
        cpuSeconds: parseTime(time),
        endedChildrenCpuSeconds: 0,
        residentBytes: Number(residentKib) * 1024,
      }
    })
}

function parseTime(time: string): number {
  const [clock = '', days = '0'] = time.split('-').toReversed()
  return Number(days) * 86_400 + clock.split(':').reduce((total, part) => total * 60 + Number(part), 0)
}
