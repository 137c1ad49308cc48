import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { execUs } from '@carpool/core'
import type { RecordWords } from './journal-format.ts'
import { SLOT } from './slots.ts'

export const HOUR_MS = 3_600_000

/** Sums in the order of the columns of `totals`. What was refused counts as that and in its bytes, and in nothing else. */
export const SUM_NAMES = [
  'invocations',
  'failures',
  'refused',
  'cold_starts',
  'cpu_us',
  'init_cpu_us',
  'background_cpu_us',
  'wall_us',
  'queue_us',
  'init_us',
  'exec_1_ms',
  'exec_100_ms',
  'init_1_ms',
  'instance_us',
  'bytes_in',
  'bytes_out',
  'egress_bytes_in',
  'egress_bytes_out',
] as const

const COLUMNS = ['hour', 'revision', ...SUM_NAMES, 'memory_peak_kb', 'first_sequence', 'last_sequence'] as const
const AT = Object.fromEntries(COLUMNS.map((name, index) => [name, index])) as Record<(typeof COLUMNS)[number], number>

/** Sums stay whole numbers that JavaScript can tell apart, whatever a row holds. */
const ADD_TO_TOTALS = `
  INSERT INTO totals VALUES (${COLUMNS.map(() => '?').join(', ')})
  ON CONFLICT (hour, revision) DO UPDATE SET
    ${SUM_NAMES.map((name) => `${name} = min(${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`).join(', ')},
    memory_peak_kb = max(memory_peak_kb, excluded.memory_peak_kb),
    first_sequence = coalesce(min(first_sequence, excluded.first_sequence), excluded.first_sequence),
    last_sequence = coalesce(max(last_sequence, excluded.last_sequence), excluded.last_sequence)`

/** Values of one row of `totals`. */
type TotalsRow = number[]

/** The totals of the rows of one transaction, by hour and revision, until they are stored with it. */
export class HourlySums {
  readonly #add: StatementSync
  readonly #byRevision = new Map<number, TotalsRow[]>()
  #latest: TotalsRow = []

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(ADD_TO_TOTALS)
  }

  /** @param words undefined for background usage */
  add(slots: Float64Array, base: number, revision: number, words: RecordWords | undefined): void {
    const sequence = figure(slots, base + SLOT.sequence)
    const hour = Math.floor(figure(slots, base + SLOT.startedAtMs) / HOUR_MS)
    const isLatest = this.#latest[AT.hour] === hour && this.#latest[AT.revision] === revision
    const sums = isLatest ? this.#latest : this.#find(hour, revision, sequence)
    this.#latest = sums
    sums[AT.last_sequence] = sequence
    if (words === undefined) {
      increase(sums, AT.background_cpu_us, figure(slots, base + SLOT.cpuUs))
      increase(sums, AT.egress_bytes_in, figure(slots, base + SLOT.egressBytesIn))
      increase(sums, AT.egress_bytes_out, figure(slots, base + SLOT.egressBytesOut))
      return
    }
    increase(sums, AT.bytes_in, figure(slots, base + SLOT.bytesIn))
    const [, start, outcome] = words
    if (outcome === 'refused') {
      increase(sums, AT.refused, 1)
      return
    }
    const wallUs = figure(slots, base + SLOT.wallUs)
    const queueUs = figure(slots, base + SLOT.queueUs)
    const initUs = figure(slots, base + SLOT.initUs)
    const exec = execUs({ wallUs, queueUs, initUs })
    increase(sums, AT.invocations, 1)
    if (outcome !== 'ok') increase(sums, AT.failures, 1)
    if (start !== 'warm') increase(sums, AT.cold_starts, 1)
    increase(sums, AT.cpu_us, figure(slots, base + SLOT.cpuUs))
    increase(sums, AT.init_cpu_us, figure(slots, base + SLOT.initCpuUs))
    increase(sums, AT.wall_us, wallUs)
    increase(sums, AT.queue_us, queueUs)
    increase(sums, AT.init_us, initUs)
    increase(sums, AT.exec_1_ms, Math.ceil(exec / 1000))
    increase(sums, AT.exec_100_ms, Math.ceil(exec / 100_000) * 100)
    increase(sums, AT.init_1_ms, Math.ceil(initUs / 1000))
    increase(sums, AT.instance_us, figure(slots, base + SLOT.instanceUs))
    increase(sums, AT.bytes_out, figure(slots, base + SLOT.bytesOut))
    increase(sums, AT.egress_bytes_in, figure(slots, base + SLOT.egressBytesIn))
    increase(sums, AT.egress_bytes_out, figure(slots, base + SLOT.egressBytesOut))
    sums[AT.memory_peak_kb] = Math.max(sums[AT.memory_peak_kb] ?? 0, figure(slots, base + SLOT.memoryPeakKb))
  }

  /** Adds them to `totals`, within the transaction of their rows, and forgets them. */
  store(): void {
    for (const rows of this.#byRevision.values()) for (const row of rows) this.#add.run(...row)
    this.clear()
  }

  clear(): void {
    this.#byRevision.clear()
    this.#latest = []
  }

  #find(hour: number, revision: number, sequence: number): TotalsRow {
    const rows = this.#byRevision.get(revision)
    const found = rows?.find((row) => row[AT.hour] === hour)
    if (found !== undefined) return found
    const row = Array<number>(COLUMNS.length).fill(0)
    row[AT.hour] = hour
    row[AT.revision] = revision
    row[AT.first_sequence] = sequence
    if (rows === undefined) this.#byRevision.set(revision, [row])
    else rows.push(row)
    return row
  }
}

function figure(slots: Float64Array, index: number): number {
  return slots[index] ?? 0
}

function increase(sums: TotalsRow, index: number, amount: number): void {
  sums[index] = Math.min((sums[index] ?? 0) + amount, Number.MAX_SAFE_INTEGER)
}
