import { isCarpoolHost } from '../carpool-server.ts'
import { readProc, readProcesses } from '../process-table.ts'
import { programOf, selectTree } from '../process-tree.ts'

/** A host process at one moment, as the system has it. */
export interface HostProcess {
  readonly pid: number
  /** User and system time since it started. */
  readonly cpuSeconds: number
  readonly residentBytes: number
}

const PAGE_BYTES = 4096
const programs = new Map<number, string>()

/** The host processes that a server has started and that are still there, those that try out a deploy included. */
export function readHostProcesses(serverPid: number): HostProcess[] {
  // The programs of a sandbox may stand between the server and a host.
  return selectTree(readProcesses(), [serverPid])
    .filter(({ pid }) => isCarpoolHost(programAt(pid)))
    .map(({ pid, cpuSeconds }) => ({ pid, cpuSeconds, residentBytes: residentBytes(pid) }))
}

/** What the pages of a process come to if each that is shared is divided among those that share it; costs milliseconds. */
export function proportionalBytes(pid: number): number | undefined {
  const kib = /^Pss:\s*(\d+) kB/m.exec(readProc(pid, 'smaps_rollup') ?? '')?.[1]
  return kib === undefined ? undefined : Number(kib) * 1024
}

function residentBytes(pid: number): number {
  return Number(readProc(pid, 'statm')?.split(' ')[1] ?? 0) * PAGE_BYTES
}

function programAt(pid: number): string {
  const known = programs.get(pid)
  if (known !== undefined) return known
  const program = programOf(readProc(pid, 'cmdline') ?? '')
  // Between fork and exec a child still has its parent's command line.
  if (isCarpoolHost(program)) programs.set(pid, program)
  return program
}
