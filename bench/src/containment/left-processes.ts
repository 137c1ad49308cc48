import { setTimeout as delay } from 'node:timers/promises'
import type { BenchServer } from '../lib/bench-server.ts'
import { isCarpoolHost } from '../lib/carpool-server.ts'
import { readProc } from '../lib/process-table.ts'
import { programOf } from '../lib/process-tree.ts'
import { readHostProcesses } from '../lib/watch/host-processes.ts'

/** States of a host that is no longer wanted. */
const LEAVING: ReadonlySet<string> = new Set(['poisoned', 'draining', 'gone'])
const LOOK_MS = 100

/**
 * Waits until every host process is one that the server counts on, and gives how many are not after a while: those that do not
 * end, and those that it has lost sight of.
 */
export async function leftHosts(server: BenchServer, timeoutMs: number): Promise<number> {
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    const { hosts } = await server.status()
    const wanted = new Set(hosts.filter(({ state }) => !LEAVING.has(state)).map(({ pid }) => pid))
    const left = readHostProcesses(server.carpool.pid).filter(({ pid }) => !wanted.has(pid)).length
    if (left === 0 || performance.now() > deadlineMs) return left
    await delay(LOOK_MS)
  }
}

/** Of processes that were hosts, those that still are, whoever they belong to now. */
export function survivors(pids: Iterable<number>): number[] {
  return [...pids].filter((pid) => isCarpoolHost(programOf(readProc(pid, 'cmdline') ?? '')))
}
