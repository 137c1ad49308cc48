import type { UsageTotals } from '@carpool/core'

const NOTHING: UsageTotals = {
  invocations: 0,
  failures: 0,
  refused: 0,
  coldStarts: 0,
  cpuUs: 0,
  initCpuUs: 0,
  backgroundCpuUs: 0,
  wallUs: 0,
  queueUs: 0,
  initUs: 0,
  exec1Ms: 0,
  exec1MbMs: 0,
  exec100Ms: 0,
  exec100MbMs: 0,
  init1Ms: 0,
  init1MbMs: 0,
  instanceUs: 0,
  instanceMbMs: 0,
  bytesIn: 0,
  bytesOut: 0,
  egressBytesIn: 0,
  egressBytesOut: 0,
  memoryPeakKb: 0,
}

const FIELDS = Object.keys(NOTHING) as ReadonlyArray<keyof UsageTotals>

/** The totals of several rows together; of none all are 0. */
export function sumUsage(rows: readonly UsageTotals[]): UsageTotals {
  const total = { ...NOTHING }
  for (const row of rows) for (const field of FIELDS) total[field] = combine(field, total[field], row[field])
  return total
}

function combine(field: keyof UsageTotals, before: number, value: number): number {
  return field === 'memoryPeakKb' ? Math.max(before, value) : before + value
}
