import { readFileSync } from 'node:fs'

export interface ProcessUsage {
  /** CPU time of all its threads since it started. */
  readonly cpuUs: number
  readonly memoryBytes: number
}

/** What the kernel's clock ticks are, in µs; 100 a second on every Linux that Node.js runs on. */
const TICK_US = 10_000

/**
 * What a process has used, as the system has it: also of one whose event loop is stuck and that tells nothing itself. Undefined if there is
 * no such process, or no /proc.
 */
export function processUsage(pid: number): ProcessUsage | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field, the program's name, may hold anything but ends with the last parenthesis.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [user, system] = [fields[11], fields[12]].map(Number)
    const residentKb = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]
    return { cpuUs: (user! + system!) * TICK_US, memoryBytes: Number(residentKb ?? 0) * 1024 }
  } catch {
    return undefined
  }
}
