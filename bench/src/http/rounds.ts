import { runClosedLoop, type LoadResult } from '../lib/closed-loop.ts'
import { SELDOM_MS, watchProcesses } from '../lib/process-watch.ts'
import { median } from '../lib/statistics.ts'
import type { TreeUsage } from '../lib/tree-account.ts'
import type { HelloServer, ServerName } from './servers.ts'

/** One server under load in one round. */
export interface Run extends LoadResult {
  readonly round: number
  readonly server: ServerName
  readonly usage: TreeUsage
}

export interface LoadShape {
  readonly connections: number
  readonly durationMs: number
}

/** The order of a round: each server comes first, second and last equally often, so that no place in the order favours one. */
export function orderOf<T>(servers: readonly T[], round: number): T[] {
  const shift = round % servers.length
  return [...servers.slice(shift), ...servers.slice(0, shift)]
}

/** Loads each server once; the others stand idle meanwhile. */
export async function runRound(servers: readonly HelloServer[], round: number, shape: LoadShape): Promise<Run[]> {
  const runs: Run[] = []
  for (const { name, url, pid } of orderOf(servers, round)) {
    const watch = await watchProcesses([pid], SELDOM_MS)
    const load = await runClosedLoop({ url, ...shape })
    runs.push({ round, server: name, ...load, usage: await watch.stop() })
  }
  return runs
}

/** Requests per second of a server, one for each round. */
export function ratesOf(runs: readonly Run[], server: ServerName): number[] {
  return runs.filter((run) => run.server === server).map(({ requestsPerSecond }) => requestsPerSecond)
}

/**
 * The median of the ratios within the rounds. What slows the machine down for some seconds slows both servers of a round down, and so falls
 * out of their ratio.
 */
export function pairedRatio(runs: readonly Run[], server: ServerName, other: ServerName): number {
  const others = ratesOf(runs, other)
  return median(ratesOf(runs, server).map((rate, round) => rate / (others[round] ?? Number.NaN)))
}
