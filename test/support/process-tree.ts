import { readProcess, type ProcessReading } from '@carpool/server/discovery'
import { readdirSync, readFileSync } from 'node:fs'

/** The process and all its descendants. */
export function readTree(rootPid: number): readonly ProcessReading[] {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : []))
  const childrenOf = Map.groupBy(all, ({ parentPid }) => parentPid)
  const tree = new Set(all.filter(({ pid }) => pid === rootPid))
  // A Set's iteration reaches what is added on the way.
  for (const { pid } of tree) for (const child of childrenOf.get(pid) ?? []) tree.add(child)
  return [...tree]
}

/** From a process up to one of its ancestors, both included. */
export function readLine(pid: number, topPid: number): readonly ProcessReading[] {
  const line: ProcessReading[] = []
  for (let at = readProcess(pid); at !== undefined; at = readProcess(at.parentPid)) {
    line.push(at)
    if (at.pid === topPid) return line
  }
  return []
}

/** Whether it is this process that runs, and not a later one with its id. */
export function isAlive({ pid, startTicks }: ProcessReading): boolean {
  const now = readProcess(pid)
  return now !== undefined && now.startTicks === startTicks && now.state !== 'Z'
}

/** Its arguments, between spaces. */
export function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}
