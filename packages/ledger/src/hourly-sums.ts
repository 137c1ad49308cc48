import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { execUs } from '@carpool/core'
import { wordsOf } from './record-codes.ts'
import { BACKGROUND, SLOT } from './slots.ts'
import { transact } from '@carpool/sqlite'
import { ADD_TO_TOTALS, HOUR_MS, SUM_NAMES, TAIL_TOTALS } from './totals-columns.ts'

/** Values of one row of `totals`, in the order of its columns. */
type TotalsRow = number[]

const AT = Object.fromEntries(
  ['hour', 'revision', ...SUM_NAMES, 'memory_peak_kb', 'first_sequence', 'last_sequence'].map((name, index) => [name, index]),
) as Record<(typeof SUM_NAMES)[number] | 'hour' | 'revision' | 'memory_peak_kb' | 'first_sequence' | 'last_sequence', number>
const COLUMN_COUNT = Object.keys(AT).length

/** All sums that there were when it began, being stored piece by piece. */
interface Round {
  readonly rows: readonly TotalsRow[]
  next: number
  /** Once it is done, `totals` hold all rows up to this sequence. */
  readonly through: number
  readonly count: number
}

/** A transaction of less than a millisecond. */
const STORED_AT_ONCE = 64

/** What a slot's words mean for the totals. */
interface WordsMeaning {
  readonly isRefused: boolean
  readonly isFailure: boolean
  readonly isCold: boolean
}

/**
 * The totals of rows that are committed, but not in `totals` yet. They are put there now and then, not with every batch: with many
 * functions a batch has nearly as many totals as rows, each dearer than a row. A process that is killed in between loses none: the tail of
 * rows after `totals_through` is summed up at the next start, and with every query.
 */
export class HourlySums {
  readonly #database: DatabaseSync
  readonly #add: StatementSync
  readonly #setThrough: StatementSync
  readonly #byRevision = new Map<number, TotalsRow[]>()
  readonly #meanings: WordsMeaning[] = []
  #rows = 0
  #lastSequence = 0
  #latest: TotalsRow = []
  #round: Round | undefined

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#add = database.prepare(`INSERT INTO totals VALUES (${Array(COLUMN_COUNT).fill('?').join(', ')}) ${ADD_TO_TOTALS}`)
    this.#setThrough = database.prepare('UPDATE totals_through SET sequence = ?')
  }

  /** Rows that are not in `totals` yet. */
  get rows(): number {
    return this.#rows
  }

  /** Takes up the row of a slot. Only for rows that are committed. */
  add(slots: Float64Array, base: number): void {
    const sequence = figure(slots, base + SLOT.sequence)
    const revision = figure(slots, base + SLOT.revisionKey)
    const hour = Math.floor(figure(slots, base + SLOT.startedAtMs) / HOUR_MS)
    const sums =
      this.#latest[AT.hour] === hour && this.#latest[AT.revision] === revision
        ? this.#latest
        : this.#find(hour, revision, sequence)
    this.#latest = sums
    this.#rows += 1
    this.#lastSequence = sequence
    sums[AT.last_sequence] = sequence
    const wordsCode = figure(slots, base + SLOT.words)
    if (wordsCode === BACKGROUND) {
      increase(sums, AT.background_cpu_us, figure(slots, base + SLOT.cpuUs))
      increase(sums, AT.egress_bytes_in, figure(slots, base + SLOT.egressBytesIn))
      increase(sums, AT.egress_bytes_out, figure(slots, base + SLOT.egressBytesOut))
      return
    }
    const { isRefused, isFailure, isCold } = (this.#meanings[wordsCode] ??= meaningOf(wordsCode))
    increase(sums, AT.bytes_in, figure(slots, base + SLOT.bytesIn))
    if (isRefused) {
      increase(sums, AT.refused, 1)
      return
    }
    const wallUs = figure(slots, base + SLOT.wallUs)
    const queueUs = figure(slots, base + SLOT.queueUs)
    const initUs = figure(slots, base + SLOT.initUs)
    const exec = execUs({ wallUs, queueUs, initUs })
    increase(sums, AT.invocations, 1)
    if (isFailure) increase(sums, AT.failures, 1)
    if (isCold) increase(sums, AT.cold_starts, 1)
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

  /**
   * Puts some of them into `totals`, in a transaction of its own. To be called until it gives false. Meanwhile `last_sequence` of each row of
   * `totals` says what that one holds already. Throws what SQLite says; then nothing has changed.
   */
  storeSome(): boolean {
    this.#round ??= { rows: [...this.#byRevision.values()].flat(), next: 0, through: this.#lastSequence, count: this.#rows }
    const { rows, next, through, count } = this.#round
    const some = rows.slice(next, next + STORED_AT_ONCE)
    const isLast = next + some.length === rows.length
    transact(this.#database, () => {
      for (const row of some) this.#add.run(...row)
      if (isLast) this.#setThrough.run(through)
    })
    for (const row of some) this.#forget(row)
    this.#round.next += some.length
    if (!isLast) return true
    this.#rows -= count
    this.#round = undefined
    return false
  }

  /** Sums up the rows that the process before left, within the transaction of the caller. */
  storeTail(lastSequence: number): void {
    this.#database.exec(`INSERT INTO totals SELECT * FROM (${TAIL_TOTALS}) WHERE true ${ADD_TO_TOTALS}`)
    this.#setThrough.run(lastSequence)
  }

  #forget(row: TotalsRow): void {
    if (this.#latest === row) this.#latest = []
    const rows = this.#byRevision.get(row[AT.revision] ?? 0)
    if (rows === undefined || rows.length <= 1) this.#byRevision.delete(row[AT.revision] ?? 0)
    else rows.splice(rows.indexOf(row), 1)
  }

  #find(hour: number, revision: number, sequence: number): TotalsRow {
    const rows = this.#byRevision.get(revision)
    const found = rows?.find((row) => row[AT.hour] === hour)
    if (found !== undefined) return found
    const row = Array<number>(COLUMN_COUNT).fill(0)
    row[AT.hour] = hour
    row[AT.revision] = revision
    row[AT.first_sequence] = sequence
    if (rows === undefined) this.#byRevision.set(revision, [row])
    else rows.push(row)
    return row
  }
}

function meaningOf(wordsCode: number): WordsMeaning {
  const { outcome, start } = wordsOf(wordsCode)
  return { isRefused: outcome === 'refused', isFailure: outcome !== 'ok', isCold: start !== 'warm' }
}

function figure(slots: Float64Array, index: number): number {
  return slots[index] ?? 0
}

function increase(sums: TotalsRow, index: number, amount: number): void {
  sums[index] = Math.min((sums[index] ?? 0) + amount, Number.MAX_SAFE_INTEGER)
}
