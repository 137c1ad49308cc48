import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Test } from 'tap'
import { openAccess, type AccessOptions } from '../../src/index.ts'

/** An access database in a folder, with a clock that the test sets. */
export function open(t: Test, folder: string = t.testdir(), options: Partial<AccessOptions> = {}) {
  const clock = { nowMs: Date.UTC(2026, 0, 1) }
  const problems: unknown[] = []
  const store = openAccess(folder, { now: () => clock.nowMs, onProblem: (cause) => problems.push(cause), ...options })
  let isClosed = false
  const close = (): void => {
    if (!isClosed) store.close()
    isClosed = true
  }
  t.teardown(close)
  return { ...store, clock, problems, folder, close }
}

/** All that is in the database, as text. */
export function dump(folder: string): string {
  const database = new DatabaseSync(join(folder, 'access.sqlite'))
  const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table'`).all()
  const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM ${String(name)}`).all())
  database.close()
  const asText = (value: unknown): string => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value))
  return rows.map((row) => Object.values(row).map(asText).join('|')).join('\n')
}
