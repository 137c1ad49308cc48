import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { NO_TOTALS, type InvocationQuery, type InvocationRecord, type UsageQuery, type UsageRow } from '@carpool/core'
import { columnOf, HOUR_MS, SUM_FIELDS } from './hourly-sums.ts'
import { readUuid } from './journal-format.ts'

interface Condition {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

function whereOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 0) return { sql: '', values: [] }
  return { sql: `WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}`, values: conditions.flatMap(({ values }) => values) }
}

/** Hours that ended after that. */
function hoursSince(sinceMs: number): Condition {
  return { sql: `(hour + 1) * ${HOUR_MS} > ?`, values: [sinceMs] }
}

/** Rows of the function and the owner that are asked for; undefined: of any. */
function revisionsOf({ functionName, owner }: InvocationQuery | UsageQuery): Condition | undefined {
  const given = Object.entries({ function: functionName, owner }).filter(([, value]) => value !== undefined)
  if (given.length === 0) return undefined
  return {
    sql: `revision IN (SELECT key FROM revisions WHERE ${given.map(([column]) => `${column} = ?`).join(' AND ')})`,
    values: given.map(([, value]) => value as string),
  }
}

const KEYS = { function: 'revisions.function', owner: 'revisions.owner', hour: 'sums.hour' } as const
/** `total` rather than `sum`: it does not overflow. */
const SUMS = SUM_FIELDS.map((field) => `total(${columnOf(field)}) AS ${columnOf(field)}`).join(', ')

/** The totals of everything that is in the database, by key. */
export function readUsage(database: DatabaseSync, query: UsageQuery): UsageRow[] {
  const { by, sinceMs } = query
  const where = whereOf([sinceMs === undefined ? [] : hoursSince(sinceMs), revisionsOf(query) ?? []].flat())
  const rows = database
    .prepare(
      `SELECT
        ${KEYS[by]} AS key, ${SUMS}, max(memory_peak_kb) AS memory_peak_kb,
        total(exec_1_ms * memory_mb) AS exec_1_mb_ms, total(exec_100_ms * memory_mb) AS exec_100_mb_ms,
        total(init_1_ms * memory_mb) AS init_1_mb_ms, total(instance_us * memory_mb) / 1000 AS instance_mb_ms
      FROM (SELECT * FROM totals ${where.sql}) AS sums JOIN revisions ON revisions.key = sums.revision
      GROUP BY ${KEYS[by]} ORDER BY ${KEYS[by]}`,
    )
    .all(...where.values)
  return rows.map((row) => usageRow(by, row)).filter(hasAnything)
}

const USAGE_FIELDS = Object.keys(NO_TOTALS).map((field) => [field, columnOf(field)] as const)

function usageRow(by: UsageQuery['by'], row: Record<string, SQLOutputValue>): UsageRow {
  const figure = (column: string): number => Math.min(Math.round(Number(row[column])), Number.MAX_SAFE_INTEGER)
  const figures = Object.fromEntries(USAGE_FIELDS.map(([field, column]) => [field, figure(column)]))
  const key = by === 'hour' ? new Date(Number(row['key']) * HOUR_MS).toISOString() : String(row['key'])
  return { key, ...(figures as Omit<UsageRow, 'key'>) }
}

function hasAnything(row: UsageRow): boolean {
  return Object.values(row).some((figure) => typeof figure === 'number' && figure > 0)
}

/** Newest first is by the sequence, which needs no sorting: the one that ended last comes first. */
const ORDERS = { newest: 'sequence DESC', slow: 'max(0, wall_us - queue_us - init_us) DESC, sequence DESC' } as const

export function readInvocations(database: DatabaseSync, query: InvocationQuery): InvocationRecord[] {
  const { sinceMs, failed, slow, limit } = query
  const conditions: Condition[] = []
  if (failed === true) conditions.push({ sql: `outcome <> 'ok'`, values: [] })
  if (sinceMs !== undefined) conditions.push({ sql: 'started_at_ms >= ?', values: [sinceMs] })
  const revisions = revisionsOf(query)
  if (revisions !== undefined) conditions.push(revisions)
  if (conditions.some(({ values }) => values.length > 0)) conditions.push(rangeOf(database, sinceMs ?? 0, revisions))
  const where = whereOf(conditions)
  const order = slow === true ? ORDERS.slow : ORDERS.newest
  const rows = database
    .prepare(
      `SELECT invocations.*, names.function AS function_name, names.revision AS revision_id, names.owner, names.memory_mb
      FROM (SELECT * FROM invocations ${where.sql} ORDER BY ${order} LIMIT ?) AS invocations
      LEFT JOIN revisions AS names ON names.key = invocations.revision
      ORDER BY ${order}`,
    )
    .all(...where.values, Math.max(0, Math.floor(limit)))
  return rows.map(recordOf)
}

/** The sequences between which the totals say that such rows are: it saves looking through all others. */
function rangeOf(database: DatabaseSync, sinceMs: number, revisions: Condition | undefined): Condition {
  const where = whereOf([hoursSince(sinceMs), revisions ?? []].flat())
  const row = database
    .prepare(`SELECT min(first_sequence) AS first, max(last_sequence) AS last FROM totals ${where.sql}`)
    .get(...where.values)
  const first = row?.['first'] ?? null
  const range = first === null ? [Number.MAX_SAFE_INTEGER, 0] : [Number(first), Number(row?.['last'])]
  return { sql: 'sequence BETWEEN ? AND ?', values: range }
}

const RECORD_FIGURES = [
  'status',
  'host',
  'queueUs',
  'wallUs',
  'memoryMb',
  'bytesIn',
  'bytesOut',
  'cpuUs',
  'initUs',
  'initCpuUs',
  'memoryPeakKb',
  'egressBytesOut',
  'egressBytesIn',
  'openUs',
  'sockets',
  'socketUs',
  'attempts',
] as const

const RECORD_COLUMNS = RECORD_FIGURES.map((field) => [field, columnOf(field)] as const)

/** Enums stay as they are: a newer Carpool may have written some that this one does not know. */
function recordOf(row: Record<string, SQLOutputValue>): InvocationRecord {
  const text = (column: string): string => (typeof row[column] === 'string' ? row[column] : '')
  const figures = Object.fromEntries(RECORD_COLUMNS.map(([field, column]) => [field, Number(row[column])]))
  return {
    id: row['id'] instanceof Uint8Array ? readUuid(row['id']) : text('id'),
    functionName: text('function_name'),
    revision: text('revision_id'),
    owner: text('owner'),
    trigger: text('trigger') as InvocationRecord['trigger'],
    startedAtMs: Number(row['started_at_ms']),
    start: text('start') as InvocationRecord['start'],
    outcome: text('outcome') as InvocationRecord['outcome'],
    ...(row['error'] === null ? {} : { error: text('error') as NonNullable<InvocationRecord['error']> }),
    ...(figures as Pick<InvocationRecord, (typeof RECORD_FIGURES)[number]>),
  }
}
