import { runClosedLoop, type LoadResult } from '../lib/closed-loop.ts'
import { SELDOM_MS, watchProcesses } from '../lib/process-watch.ts'
import { median } from '../lib/statistics.ts'
import type { TreeUsage } from '../lib/tree-account.ts'
import type { BenchedServer, ServerName } from './servers.ts'
import type { Workload } from './workloads.ts'

/** One server under load in one round, over one number of connections. */
export interface Run extends LoadResult {
  readonly round: number
  readonly server: ServerName
  readonly connections: number
  readonly usage: TreeUsage
}

export interface LoadShape {
  readonly workload: Workload
  readonly connections: number
  readonly durationMs: number
}

/** What of a run its rates are compared by. */
type Rated = Pick<Run, 'round' | 'server' | 'connections' | 'requestsPerSecond'>

/** The order of a round: each server comes first, second and last equally often, so that no place in the order favours one. */
export function orderOf<T>(servers: readonly T[], round: number): T[] {
  const shift = round % servers.length
  return [...servers.slice(shift), ...servers.slice(0, shift)]
}

/** Loads each server once; the others stand idle meanwhile. */
export async function runRound(servers: readonly BenchedServer[], round: number, shape: LoadShape): Promise<Run[]> {
  const { workload, connections, durationMs } = shape
  const runs: Run[] = []
  for (const { name, url, pid } of orderOf(servers, round)) {
    const watch = await watchProcesses([pid], SELDOM_MS)
    const load = await runClosedLoop({ url, ...requestOf(workload), connections, durationMs })
    runs.push({ round, server: name, connections, ...load, usage: await watch.stop() })
  }
  return runs
}

/** What the load generator sends. */
export function requestOf({ method, headers, body }: Workload): Pick<Workload, 'method' | 'headers' | 'body'> {
  return { method, headers, ...(body !== undefined && { body }) }
}

/** Requests per second of a server, one for each round. */
export function ratesOf(runs: readonly Rated[], server: ServerName): number[] {
  return runs
    .filter((run) => run.server === server)
    .toSorted((a, b) => a.round - b.round)
    .map(({ requestsPerSecond }) => requestsPerSecond)
}

/**
 * The median of the ratios within the rounds. What slows the machine down for some seconds slows both servers of a round down,
 * and so falls out of their ratio. Undefined if there was no such server.
 */
export function pairedRatio(runs: readonly Rated[], server: ServerName, other: ServerName): number | undefined {
  return medianRatio(ratesOf(runs, server), ratesOf(runs, other))
}

/** The same of one server over two numbers of connections. */
export function connectionsRatio(runs: readonly Rated[], server: ServerName, many: number, few: number): number | undefined {
  const rates = (connections: number): number[] => ratesOf(runsOver(runs, connections), server)
  return medianRatio(rates(many), rates(few))
}

export function runsOver<R extends Rated>(runs: readonly R[], connections: number): R[] {
  return runs.filter((run) => run.connections === connections)
}

function medianRatio(rates: readonly number[], others: readonly number[]): number | undefined {
  if (rates.length === 0 || rates.length !== others.length) return undefined
  return median(rates.map((rate, round) => rate / (others[round] ?? Number.NaN)))
}
