/**
 * The figures of the hourly totals, each with what one row of `invocations` adds to it. What was refused counts as that and in its bytes,
 * and in nothing else. The same sums stand in `hourly-sums.ts` for rows that are in memory.
 */
const RAN = `(outcome <> 'refused')`
const EXEC_US = 'max(0, wall_us - queue_us - init_us)'

export const SUM_COLUMNS = [
  { name: 'invocations', ofInvocation: RAN },
  { name: 'failures', ofInvocation: `(outcome NOT IN ('ok', 'refused'))` },
  { name: 'refused', ofInvocation: `(outcome = 'refused')` },
  { name: 'cold_starts', ofInvocation: `(${RAN} AND start <> 'warm')` },
  { name: 'cpu_us', ofInvocation: `${RAN} * cpu_us` },
  { name: 'init_cpu_us', ofInvocation: `${RAN} * init_cpu_us` },
  { name: 'background_cpu_us', ofInvocation: '0', ofBackground: 'cpu_us' },
  { name: 'wall_us', ofInvocation: `${RAN} * wall_us` },
  { name: 'queue_us', ofInvocation: `${RAN} * queue_us` },
  { name: 'init_us', ofInvocation: `${RAN} * init_us` },
  { name: 'exec_1_ms', ofInvocation: `${RAN} * ((${EXEC_US} + 999) / 1000)` },
  { name: 'exec_100_ms', ofInvocation: `${RAN} * ((${EXEC_US} + 99999) / 100000) * 100` },
  { name: 'init_1_ms', ofInvocation: `${RAN} * ((init_us + 999) / 1000)` },
  { name: 'instance_us', ofInvocation: `${RAN} * instance_us` },
  { name: 'bytes_in', ofInvocation: 'bytes_in' },
  { name: 'bytes_out', ofInvocation: `${RAN} * bytes_out` },
  { name: 'egress_bytes_in', ofInvocation: `${RAN} * egress_bytes_in`, ofBackground: 'egress_bytes_in' },
  { name: 'egress_bytes_out', ofInvocation: `${RAN} * egress_bytes_out`, ofBackground: 'egress_bytes_out' },
] as const satisfies ReadonlyArray<{ name: string; ofInvocation: string; ofBackground?: string }>

/** The largest of all rows rather than their sum. */
export const PEAK_COLUMN = { name: 'memory_peak_kb', ofInvocation: `${RAN} * memory_peak_kb` } as const

export const SUM_NAMES = SUM_COLUMNS.map(({ name }) => name)

export const HOUR_MS = 3_600_000

/** Sums stay whole numbers that JavaScript can tell apart, whatever a row holds. `total` does not overflow, where `sum` fails. */
function clampedTotal(expression: string): string {
  return `CAST(min(total(${expression}), ${Number.MAX_SAFE_INTEGER}) AS INTEGER)`
}

/**
 * Selects the totals of the rows that are not in `totals` yet, in the order of its columns. Sums are stored piece by piece: in between, a
 * row of `totals` may hold more than all of them together do, and its own `last_sequence` says how much.
 */
export const TAIL_TOTALS = `
  SELECT
    tail.hour, tail.revision, ${SUM_NAMES.map((name) => `${clampedTotal(`tail.${name}`)} AS ${name}`).join(', ')},
    max(tail.${PEAK_COLUMN.name}) AS ${PEAK_COLUMN.name},
    min(tail.sequence) AS first_sequence, max(tail.sequence) AS last_sequence
  FROM (
    SELECT
      started_at_ms / ${HOUR_MS} AS hour, revision, sequence,
      ${SUM_COLUMNS.map(({ name, ofInvocation }) => `${ofInvocation} AS ${name}`).join(', ')},
      ${PEAK_COLUMN.ofInvocation} AS ${PEAK_COLUMN.name}
    FROM invocations WHERE sequence > (SELECT sequence FROM totals_through)
    UNION ALL
    SELECT
      at_ms / ${HOUR_MS}, revision, sequence,
      ${SUM_COLUMNS.map((column) => ('ofBackground' in column ? column.ofBackground : '0')).join(', ')},
      0
    FROM background WHERE sequence > (SELECT sequence FROM totals_through)
  ) AS tail
  LEFT JOIN totals AS held ON held.hour = tail.hour AND held.revision = tail.revision
  WHERE tail.sequence > coalesce(held.last_sequence, 0)
  GROUP BY tail.hour, tail.revision`

/** Takes the values of a row of `totals` and adds them to the one that is there. */
export const ADD_TO_TOTALS = `
  ON CONFLICT (hour, revision) DO UPDATE SET
    ${SUM_NAMES.map((name) => `${name} = min(${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`).join(', ')},
    ${PEAK_COLUMN.name} = max(${PEAK_COLUMN.name}, excluded.${PEAK_COLUMN.name}),
    first_sequence = coalesce(min(first_sequence, excluded.first_sequence), excluded.first_sequence),
    last_sequence = coalesce(max(last_sequence, excluded.last_sequence), excluded.last_sequence)`
