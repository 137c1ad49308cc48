import { cpuSeconds, megabytes, times } from '../lib/quantities.ts'
import { median } from '../lib/statistics.ts'
import type { Column } from '../lib/table.ts'
import { USUAL_CONNECTIONS, type ConnectionsResult } from './checks.ts'
import { ratesOf, type Run } from './rounds.ts'
import { SERVER_NAMES, type ServerName } from './servers.ts'

interface RateRow {
  readonly server: ServerName
  readonly rates: readonly number[]
  readonly runs: readonly Run[]
}

/** Of the servers that were loaded. */
export function rateRows(runs: readonly Run[]): RateRow[] {
  return SERVER_NAMES.map((server) => ({
    server,
    rates: ratesOf(runs, server),
    runs: runs.filter((run) => run.server === server),
  })).filter(({ rates }) => rates.length > 0)
}

export function rateColumns(rounds: number): ReadonlyArray<Column<RateRow>> {
  const medianOf = (of: readonly Run[], value: (run: Run) => number): number => median(of.map(value))
  return [
    { title: 'server', align: 'left', text: ({ server }) => server },
    ...Array.from({ length: rounds }, (_, round) => ({
      title: String(round + 1),
      text: ({ rates }: RateRow) => Math.round(rates[round] ?? 0).toString(),
    })),
    { title: 'median', text: ({ rates }) => Math.round(median(rates)).toString() },
    // The generator counts whole milliseconds, so that a median says nothing here.
    { title: 'p99', text: ({ runs }) => `${Math.round(medianOf(runs, ({ p99Ms }) => p99Ms))} ms` },
    { title: 'response', text: ({ runs }) => `${Math.round(medianOf(runs, ({ responseBytes }) => responseBytes))} B` },
    { title: 'generator', text: ({ runs }) => `${Math.round(medianOf(runs, ({ generatorCores }) => generatorCores) * 100)} %` },
  ]
}

/** One column for each server that Carpool is compared with, and one for Carpool itself. */
export function ratioColumns(results: readonly ConnectionsResult[]): ReadonlyArray<Column<ConnectionsResult>> {
  const ratio = (value: number | undefined): string => (value === undefined ? '' : times(value))
  const others = SERVER_NAMES.filter((name) => results.some(({ ratios }) => ratios[name] !== undefined))
  return [
    { title: 'connections', text: ({ connections }) => String(connections) },
    ...others.map((name) => ({ title: name, text: ({ ratios }: ConnectionsResult) => ratio(ratios[name]) })),
    ...(results.some(({ ownRatio }) => ownRatio !== undefined)
      ? [{ title: `itself over ${USUAL_CONNECTIONS}`, text: ({ ownRatio }: ConnectionsResult) => ratio(ownRatio) }]
      : []),
  ]
}

interface ProcessRow {
  readonly server: ServerName
  readonly program: string
  readonly cpuSeconds: number
  readonly cpuMicrosPerRequest: number
  readonly peakBytes: number
}

/** Each process of each server; those that took no CPU are left out. */
export function processRows(runs: readonly Run[]): ProcessRow[] {
  return rateRows(runs).flatMap(({ server, runs }) => {
    const requests = runs.reduce((total, { requests }) => total + requests, 0)
    const byPid = Map.groupBy(
      runs.flatMap(({ usage }) => usage.processes),
      ({ pid }) => pid,
    )
    return [...byPid.values()]
      .map((looks) => {
        const cpu = looks.reduce((total, { cpuSeconds }) => total + cpuSeconds, 0)
        return {
          server,
          program: looks[0]?.program ?? '',
          cpuSeconds: cpu,
          cpuMicrosPerRequest: (cpu * 1e6) / requests,
          peakBytes: Math.max(...looks.map(({ peakBytes }) => peakBytes)),
        }
      })
      .filter(({ cpuSeconds }) => cpuSeconds > 0)
  })
}

export const processColumns: ReadonlyArray<Column<ProcessRow>> = [
  { title: 'server', align: 'left', text: ({ server }) => server },
  { title: 'process', align: 'left', text: ({ program }) => program },
  { title: 'CPU', text: (row) => cpuSeconds(row.cpuSeconds) },
  { title: 'CPU per request', text: ({ cpuMicrosPerRequest }) => `${cpuMicrosPerRequest.toFixed(1)} µs` },
  { title: 'peak memory', text: ({ peakBytes }) => megabytes(peakBytes) },
]
