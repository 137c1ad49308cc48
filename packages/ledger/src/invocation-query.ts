import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { InvocationQuery, InvocationRecord } from '@carpool/core'
import { HOUR_MS } from './hourly-sums.ts'
import { readUuid } from './uuid-bytes.ts'

/** Newest first is by the sequence, which needs no sorting: the one that ended last comes first. */
const ORDERS = { newest: 'sequence DESC', slow: 'max(0, wall_us - queue_us - init_us) DESC, sequence DESC' } as const

interface Condition {
  readonly sql: string
  readonly values: readonly SQLInputValue[]
}

export function readInvocations(database: DatabaseSync, query: InvocationQuery): InvocationRecord[] {
  const conditions = conditionsOf(database, query)
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}`
  const rows = database
    .prepare(
      `SELECT invocations.*, names.function AS function_name, names.revision AS revision_id, names.owner, names.memory_mb
      FROM (SELECT * FROM invocations ${where} ORDER BY ${query.slow === true ? ORDERS.slow : ORDERS.newest} LIMIT ?) AS invocations
      LEFT JOIN revisions AS names ON names.key = invocations.revision
      ORDER BY ${query.slow === true ? ORDERS.slow : ORDERS.newest}`,
    )
    .all(...conditions.flatMap(({ values }) => values), Math.max(0, Math.floor(query.limit)))
  return rows.map(recordOf)
}

function conditionsOf(database: DatabaseSync, query: InvocationQuery): Condition[] {
  const { sinceMs, failed } = query
  const conditions: Condition[] = []
  if (failed === true) conditions.push({ sql: `outcome <> 'ok'`, values: [] })
  if (sinceMs !== undefined) conditions.push({ sql: 'started_at_ms >= ?', values: [sinceMs] })
  const revisions = revisionsOf(query)
  if (revisions !== undefined) conditions.push(revisions)
  if (sinceMs !== undefined || revisions !== undefined) {
    const [first, last] = rangeOf(database, sinceMs ?? 0, revisions)
    conditions.push({ sql: 'sequence BETWEEN ? AND ?', values: [first, last] })
  }
  return conditions
}

/** Rows of the function and the owner that are asked for; undefined: of any. */
function revisionsOf({ functionName, owner }: InvocationQuery): Condition | undefined {
  const given = Object.entries({ function: functionName, owner }).filter(([, value]) => value !== undefined)
  if (given.length === 0) return undefined
  return {
    sql: `revision IN (SELECT key FROM revisions WHERE ${given.map(([column]) => `${column} = ?`).join(' AND ')})`,
    values: given.map(([, value]) => value as string),
  }
}

/** The sequences between which the totals say that such rows are: it saves looking through all others. */
function rangeOf(database: DatabaseSync, sinceMs: number, revisions: Condition | undefined): [first: number, last: number] {
  const row = database
    .prepare(
      `SELECT min(first_sequence) AS first, max(last_sequence) AS last FROM totals
       WHERE (hour + 1) * ${HOUR_MS} > ? ${revisions === undefined ? '' : `AND ${revisions.sql}`}`,
    )
    .get(sinceMs, ...(revisions?.values ?? []))
  const first = row?.['first'] ?? null
  return first === null ? [Number.MAX_SAFE_INTEGER, 0] : [Number(first), Number(row?.['last'])]
}

/** Words stay as they are: a newer Carpool may have written some that this one does not know. */
function recordOf(row: Record<string, SQLOutputValue>): InvocationRecord {
  const figure = (name: string): number => Number(row[name])
  const text = (name: string): string => toText(row[name])
  return {
    id: row['id'] instanceof Uint8Array ? readUuid(row['id']) : text('id'),
    functionName: text('function_name'),
    revision: text('revision_id'),
    owner: text('owner'),
    trigger: text('trigger') as InvocationRecord['trigger'],
    startedAtMs: figure('started_at_ms'),
    start: text('start') as InvocationRecord['start'],
    outcome: text('outcome') as InvocationRecord['outcome'],
    ...(row['error'] === null ? {} : { error: text('error') as NonNullable<InvocationRecord['error']> }),
    status: figure('status'),
    host: figure('host'),
    queueUs: figure('queue_us'),
    wallUs: figure('wall_us'),
    memoryMb: figure('memory_mb'),
    bytesIn: figure('bytes_in'),
    bytesOut: figure('bytes_out'),
    cpuUs: figure('cpu_us'),
    initUs: figure('init_us'),
    initCpuUs: figure('init_cpu_us'),
    memoryPeakKb: figure('memory_peak_kb'),
    egressBytesOut: figure('egress_bytes_out'),
    egressBytesIn: figure('egress_bytes_in'),
    attempts: figure('attempts'),
  }
}

function toText(value: SQLOutputValue | undefined): string {
  return typeof value === 'string' ? value : ''
}
