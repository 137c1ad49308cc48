import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { UsageQuery, UsageRow } from '@carpool/core'
import { HOUR_MS, SUM_NAMES } from './hourly-sums.ts'

const KEYS = { function: 'revisions.function', owner: 'revisions.owner', hour: 'sums.hour' } as const

/** `total` rather than `sum`: it does not overflow. */
const SUMS = SUM_NAMES.map((name) => `total(${name}) AS ${name}`).join(', ')

/** The totals of everything that is in the database, by key. */
export function readUsage(database: DatabaseSync, { by, sinceMs, functionName, owner }: UsageQuery): UsageRow[] {
  const conditions: string[] = []
  const values: SQLInputValue[] = []
  if (sinceMs !== undefined) {
    conditions.push(`(sums.hour + 1) * ${HOUR_MS} > ?`)
    values.push(sinceMs)
  }
  if (functionName !== undefined) {
    conditions.push('revisions.function = ?')
    values.push(functionName)
  }
  if (owner !== undefined) {
    conditions.push('revisions.owner = ?')
    values.push(owner)
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const rows = database
    .prepare(
      `SELECT
        ${KEYS[by]} AS key, ${SUMS}, max(memory_peak_kb) AS memory_peak_kb,
        total(exec_1_ms * memory_mb) AS exec_1_mb_ms, total(exec_100_ms * memory_mb) AS exec_100_mb_ms,
        total(init_1_ms * memory_mb) AS init_1_mb_ms, total(instance_us * memory_mb) / 1000 AS instance_mb_ms
      FROM totals AS sums JOIN revisions ON revisions.key = sums.revision
      ${where} GROUP BY ${KEYS[by]} ORDER BY ${KEYS[by]}`,
    )
    .all(...values)
  return rows.map((row) => usageRow(by, row)).filter(hasAnything)
}

function usageRow(by: UsageQuery['by'], row: Record<string, unknown>): UsageRow {
  const figure = (name: string): number => Math.min(Math.round(Number(row[name])), Number.MAX_SAFE_INTEGER)
  return {
    key: by === 'hour' ? new Date(Number(row['key']) * HOUR_MS).toISOString() : String(row['key']),
    invocations: figure('invocations'),
    failures: figure('failures'),
    refused: figure('refused'),
    coldStarts: figure('cold_starts'),
    cpuUs: figure('cpu_us'),
    initCpuUs: figure('init_cpu_us'),
    backgroundCpuUs: figure('background_cpu_us'),
    wallUs: figure('wall_us'),
    queueUs: figure('queue_us'),
    initUs: figure('init_us'),
    exec1Ms: figure('exec_1_ms'),
    exec1MbMs: figure('exec_1_mb_ms'),
    exec100Ms: figure('exec_100_ms'),
    exec100MbMs: figure('exec_100_mb_ms'),
    init1Ms: figure('init_1_ms'),
    init1MbMs: figure('init_1_mb_ms'),
    instanceUs: figure('instance_us'),
    instanceMbMs: figure('instance_mb_ms'),
    bytesIn: figure('bytes_in'),
    bytesOut: figure('bytes_out'),
    egressBytesIn: figure('egress_bytes_in'),
    egressBytesOut: figure('egress_bytes_out'),
    memoryPeakKb: figure('memory_peak_kb'),
  }
}

function hasAnything(row: UsageRow): boolean {
  return Object.values(row).some((figure) => typeof figure === 'number' && figure > 0)
}
