import type { DatabaseSync } from 'node:sqlite'

/** Runs `work` in a transaction that is rolled back if it throws. */
export function transact<T>(database: DatabaseSync, work: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (cause) {
    // SQLite has already rolled back after some errors, such as a full disk.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw cause
  }
}
