import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { monotonicClock, type Clock } from '@carpool/core'
import { transact } from '@carpool/storage'
import { HOUR_MS } from './hourly-sums.ts'

/** Sequences looked at in one step: a millisecond or less. */
const CHUNK_ROWS = 500

interface OldHour {
  readonly hour: number
  readonly last: number
  /** The next sequence to look at. */
  next: number
}

/**
 * Deletes the rows of hours that are over the age, in small steps. The totals have the range of sequences of each hour, so
 * nothing is searched; other rows in that range stay.
 */
export class Retention {
  readonly #database: DatabaseSync
  readonly #oldestHour: StatementSync
  readonly #nextRow: StatementSync
  readonly #delete: readonly StatementSync[]
  readonly #forget: StatementSync
  #beforeMs = 0
  #current: OldHour | undefined

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#oldestHour = database.prepare(`
      SELECT hour, min(first_sequence) AS next, max(last_sequence) AS last FROM totals
      WHERE hour < ? AND first_sequence IS NOT NULL GROUP BY hour ORDER BY hour LIMIT 1`)
    this.#nextRow = database.prepare(`
      SELECT min(coalesce((SELECT min(sequence) FROM invocations WHERE sequence >= :from), :last + 1),
        coalesce((SELECT min(sequence) FROM background WHERE sequence >= :from), :last + 1)) AS next`)
    this.#delete = [
      database.prepare('DELETE FROM invocations WHERE sequence BETWEEN ? AND ? AND started_at_ms < ?'),
      database.prepare('DELETE FROM background WHERE sequence BETWEEN ? AND ? AND at_ms < ?'),
    ]
    this.#forget = database.prepare(
      'UPDATE totals SET first_sequence = NULL, last_sequence = NULL WHERE hour = ? AND last_sequence <= ?',
    )
  }

  /** Whole hours that ended before this are to go. */
  set beforeMs(beforeMs: number) {
    this.#beforeMs = beforeMs
  }

  /** Takes one step. Gives false if there is nothing left to delete. @throws Error of SQLite */
  step(): boolean {
    const hours = Math.floor(this.#beforeMs / HOUR_MS)
    this.#current ??= this.#oldestHour.get(hours) as unknown as OldHour | undefined
    const current = this.#current
    if (current === undefined) return false
    const endMs = (current.hour + 1) * HOUR_MS
    const next = transact(this.#database, () => {
      const from = Number(this.#nextRow.get({ from: current.next, last: current.last })?.['next'])
      const to = Math.min(from + CHUNK_ROWS - 1, current.last)
      for (const statement of this.#delete) statement.run(from, to, endMs)
      // Rows of that hour that came in the meantime have given it a range that ends later.
      if (to === current.last) this.#forget.run(current.hour, current.last)
      return to + 1
    })
    current.next = next
    if (next > current.last) this.#current = undefined
    return true
  }
}

/** A step of the time of day that is no mere correction. */
const JUMP_MS = 60_000

/**
 * The time of day by which old rows are deleted, in ms of the epoch. It ignores a jump forward of the clock until the next start:
 * what is deleted does not come back when the clock is set right. It follows the clock back.
 */
export function retentionClock(now: () => number, clock: Clock = monotonicClock): () => number {
  let offsetMs = now() - clock()
  return () => {
    const timeMs = now()
    const steadyMs = clock() + offsetMs
    if (timeMs - steadyMs < JUMP_MS) offsetMs = timeMs - clock()
    return Math.min(timeMs, clock() + offsetMs)
  }
}
