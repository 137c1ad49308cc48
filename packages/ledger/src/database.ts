import { chmodSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'
import { DAMAGED, describeFailure, isDamage } from './failure.ts'
import { MIGRATIONS } from './schema.ts'

export const LEDGER_FILE = 'ledger.sqlite'

/** Size up to which the whole file is checked at every start, in a few ms. */
const ALWAYS_CHECKED_BYTES = 4 * 1024 * 1024
/** Size up to which it is checked before the start if the process before was killed, in a quarter of a second or so. */
const CHECKED_AFTER_CRASH_BYTES = 96 * 1024 * 1024
/** An operator's shell may hold a lock for a moment. */
const BUSY_TIMEOUT_MS = 1000
/** What the write-ahead log is cut back to after a long scan has let it grow. */
const WAL_LIMIT_BYTES = 64 * 1024 * 1024

export interface OpenedDatabase {
  readonly database: DatabaseSync
  /** Whether the file was checked; else that is still to be done. */
  readonly isChecked: boolean
}

/**
 * Opens the ledger for writing and brings its schema up to date.
 * @throws CarpoolError `data-unusable` if it is damaged, cannot be written, or was written by a newer Carpool
 */
export function openForWriting(path: string): OpenedDatabase {
  const isAfterCrash = sizeBytes(`${path}-wal`) > 0
  const limitBytes = isAfterCrash ? CHECKED_AFTER_CRASH_BYTES : ALWAYS_CHECKED_BYTES
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS, enableDoubleQuotedStringLiterals: false })
    chmodSync(path, 0o600)
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA synchronous = NORMAL')
    database.exec(`PRAGMA journal_size_limit = ${WAL_LIMIT_BYTES}`)
    migrate(database)
    const isChecked = sizeBytes(path) <= limitBytes
    if (isChecked) checkIntegrity(database)
    return { database, isChecked }
  } catch (cause) {
    database?.close()
    throw unusable(cause)
  }
}

export function openForReading(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS, enableDoubleQuotedStringLiterals: false })
}

/** Reads the whole file. @throws CarpoolError `data-unusable` if it is damaged */
export function checkIntegrity(database: DatabaseSync): void {
  const finding = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  if (finding !== 'ok') throw new CarpoolError('data-unusable', DAMAGED, { cause: finding })
}

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

function migrate(database: DatabaseSync): void {
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
  if (version > MIGRATIONS.length) {
    throw new CarpoolError(
      'data-unusable',
      `The data folder was written by a newer Carpool: its ledger has version ${version}, and this Carpool reads up to ${MIGRATIONS.length}.`,
    )
  }
  for (const [index, migration] of MIGRATIONS.entries()) {
    if (index < version) continue
    transact(database, () => {
      database.exec(migration)
      database.exec(`PRAGMA user_version = ${index + 1}`)
    })
  }
}

/** What was caught while the ledger was opened or read, as a CarpoolError. */
export function unusable(cause: unknown): CarpoolError {
  if (cause instanceof CarpoolError) return cause
  return new CarpoolError('data-unusable', isDamage(cause) ? DAMAGED : describeFailure(cause), { cause })
}

function sizeBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
