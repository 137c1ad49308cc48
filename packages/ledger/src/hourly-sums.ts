import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { execUs, type UsageTotals } from '@carpool/core'
import { SLOT, type RecordEnums } from './journal-format.ts'

export const HOUR_MS = 3_600_000

/** Sums of `totals`. What was refused counts as that and in its bytes, and in nothing else. */
export const SUM_FIELDS = [
  'invocations',
  'failures',
  'refused',
  'coldStarts',
  'cpuUs',
  'initCpuUs',
  'backgroundCpuUs',
  'wallUs',
  'queueUs',
  'initUs',
  'exec1Ms',
  'exec100Ms',
  'init1Ms',
  'instanceUs',
  'bytesIn',
  'bytesOut',
  'egressBytesIn',
  'egressBytesOut',
  'openUs',
  'sockets',
  'socketUs',
] as const satisfies ReadonlyArray<keyof UsageTotals>

/** The column of a field: `exec_1_ms` of `exec1Ms`. */
export function columnOf(field: string): string {
  return field.replaceAll(/[A-Z]|\d+/g, (part) => `_${part.toLowerCase()}`)
}

const FIELDS = ['hour', 'revision', ...SUM_FIELDS, 'memoryPeakKb', 'firstSequence', 'lastSequence'] as const
type Field = (typeof FIELDS)[number]
const AT = Object.fromEntries(FIELDS.map((field, index) => [field, index])) as Record<Field, number>
/** Sums of figures of an invocation as they are. */
const PLAIN_SUMS = (
  [
    'cpuUs',
    'initCpuUs',
    'wallUs',
    'queueUs',
    'initUs',
    'instanceUs',
    'bytesOut',
    'egressBytesIn',
    'egressBytesOut',
    'openUs',
    'sockets',
    'socketUs',
  ] as const
).map((field) => [AT[field], SLOT[field]] as const)

const SUM_COLUMNS = SUM_FIELDS.map(columnOf)
/** Sums stay safe integers, whatever a row holds. */
const ADD_TO_TOTALS = `
  INSERT INTO totals (${FIELDS.map(columnOf).join(', ')}) VALUES (${FIELDS.map(() => '?').join(', ')})
  ON CONFLICT (hour, revision) DO UPDATE SET
    ${SUM_COLUMNS.map((name) => `${name} = min(${name} + excluded.${name}, ${Number.MAX_SAFE_INTEGER})`).join(', ')},
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

  /** @param enums undefined for background usage */
  add(slots: Float64Array, base: number, revision: number, enums: RecordEnums | undefined): void {
    const figure = (place: number): number => slots[base + place] ?? 0
    const hour = Math.floor(figure(SLOT.startedAtMs) / HOUR_MS)
    const isLatest = this.#latest[AT.hour] === hour && this.#latest[AT.revision] === revision
    const sums = isLatest ? this.#latest : this.#find(hour, revision, figure(SLOT.sequence))
    this.#latest = sums
    sums[AT.lastSequence] = figure(SLOT.sequence)
    if (enums === undefined) {
      increase(sums, AT.backgroundCpuUs, figure(SLOT.cpuUs))
      increase(sums, AT.egressBytesIn, figure(SLOT.egressBytesIn))
      increase(sums, AT.egressBytesOut, figure(SLOT.egressBytesOut))
      increase(sums, AT.sockets, figure(SLOT.sockets))
      increase(sums, AT.socketUs, figure(SLOT.socketUs))
      return
    }
    increase(sums, AT.bytesIn, figure(SLOT.bytesIn))
    const [, start, outcome] = enums
    if (outcome === 'refused') return increase(sums, AT.refused, 1)
    for (const [at, place] of PLAIN_SUMS) increase(sums, at, figure(place))
    const initUs = figure(SLOT.initUs)
    const exec = execUs({ wallUs: figure(SLOT.wallUs), queueUs: figure(SLOT.queueUs), initUs })
    increase(sums, AT.invocations, 1)
    if (outcome !== 'ok') increase(sums, AT.failures, 1)
    if (start !== 'warm') increase(sums, AT.coldStarts, 1)
    increase(sums, AT.exec1Ms, Math.ceil(exec / 1000))
    increase(sums, AT.exec100Ms, Math.ceil(exec / 100_000) * 100)
    increase(sums, AT.init1Ms, Math.ceil(initUs / 1000))
    sums[AT.memoryPeakKb] = Math.max(sums[AT.memoryPeakKb] ?? 0, figure(SLOT.memoryPeakKb))
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
    const row = Array<number>(FIELDS.length).fill(0)
    row[AT.hour] = hour
    row[AT.revision] = revision
    row[AT.firstSequence] = sequence
    if (rows === undefined) this.#byRevision.set(revision, [row])
    else rows.push(row)
    return row
  }
}

function increase(sums: TotalsRow, index: number, amount: number): void {
  sums[index] = Math.min((sums[index] ?? 0) + amount, Number.MAX_SAFE_INTEGER)
}
