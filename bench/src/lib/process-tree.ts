import { basename } from 'node:path'
import { readProc, readProcesses, type ProcessReading } from './process-table.ts'

/** One process of a tree at one moment. */
export interface TreeMember {
  readonly pid: number
  readonly cpuSeconds: number
  readonly endedChildrenCpuSeconds: number
  /** What the program is: its script, or its own name. */
  readonly program: string
  readonly residentBytes: number
  /** Pages that processes share are divided among them, so that a sum counts them once. Absent where the system does not tell. */
  readonly proportionalBytes?: number
}

/** The processes with these ids and all their descendants. */
export function readTree(rootPids: readonly number[]): TreeMember[] {
  return selectTree(readProcesses(), rootPids).map(({ pid, cpuSeconds, endedChildrenCpuSeconds, residentBytes = 0 }) => ({
    pid,
    cpuSeconds,
    endedChildrenCpuSeconds,
    program: programOf(readProc(pid, 'cmdline') ?? ''),
    ...(readMemory(pid) ?? { residentBytes }),
  }))
}

/** Picks the roots and their descendants out of all processes. */
export function selectTree(processes: readonly ProcessReading[], rootPids: readonly number[]): ProcessReading[] {
  const childrenOf = Map.groupBy(processes, ({ parentPid }) => parentPid)
  const selected = new Set(processes.filter(({ pid }) => rootPids.includes(pid)))
  // A Set's iteration reaches what is added on the way.
  for (const { pid } of selected) for (const child of childrenOf.get(pid) ?? []) selected.add(child)
  return [...selected]
}

/**
 * Names a program of Node.js by its script without the folders above the workspace, any other by its binary: what starts a
 * program in a sandbox has that program's command line in its own. @param commandLine as /proc gives it
 */
export function programOf(commandLine: string): string {
  const [binary = '', ...args] = commandLine.split('\0')
  const name = basename(binary)
  const script = name.startsWith('node') ? args.find((arg) => !arg.startsWith('-') && /\.(?:[cm]?[jt]s)$/.test(arg)) : undefined
  return script === undefined ? name : script.split('/').slice(-3).join('/')
}

function readMemory(pid: number): Pick<TreeMember, 'residentBytes' | 'proportionalBytes'> | undefined {
  const rollup = readProc(pid, 'smaps_rollup')
  const kib = (field: string): number => Number(new RegExp(`^${field}:\\s*(\\d+) kB`, 'm').exec(rollup ?? '')?.[1] ?? 0)
  if (rollup === undefined || kib('Rss') === 0) return undefined
  return { residentBytes: kib('Rss') * 1024, proportionalBytes: kib('Pss') * 1024 }
}
