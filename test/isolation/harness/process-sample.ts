import { readFileSync, readdirSync, writeFileSync } from 'node:fs'

/** What the system says of a process. */
export interface ProcessSample {
  readonly residentMb: number
  readonly peakResidentMb: number
  readonly threads: number
  readonly descriptors: number
}

/** Looks at a process; undefined if it is gone. */
export function sampleProcess(pid: number): ProcessSample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const number = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
    return {
      residentMb: number('VmRSS') / 1024,
      peakResidentMb: number('VmHWM') / 1024,
      threads: number('Threads'),
      descriptors: readdirSync(`/proc/${pid}/fd`).length,
    }
  } catch {
    return undefined
  }
}

/** Has the peak of a process begin anew. @returns whether that is possible here */
export function resetPeak(pid: number): boolean {
  try {
    writeFileSync(`/proc/${pid}/clear_refs`, '5')
    return true
  } catch {
    return false
  }
}

/** Looks every few ms until something has settled. @returns the most threads that were seen */
export async function peakThreads(pid: number, until: Promise<unknown>): Promise<number> {
  let most = 0
  const look = (): void => {
    most = Math.max(most, sampleProcess(pid)?.threads ?? 0)
  }
  const timer = setInterval(look, 5)
  await until.finally(() => clearInterval(timer))
  look()
  return most
}
