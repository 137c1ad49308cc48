import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'
import type { StoreName } from './failure.ts'
import { migrate } from './migrate.ts'

export interface OpenOptions {
  readonly store: StoreName
  /** See {@link migrate}. */
  readonly migrations: readonly string[]
  /** How long to wait for a lock that another process holds, in ms. */
  readonly busyTimeoutMs: number
  /** `FULL`: what is committed outlives a power cut. `NORMAL`: it outlives the end of the process, and the file is sound after a power cut. */
  readonly synchronous: 'FULL' | 'NORMAL'
  /** Locks the file for this connection, until it is closed. Default: false. */
  readonly isExclusive?: boolean
  /** What the write-ahead log is cut back to after it has grown, in bytes. Default: it stays as large as it became. */
  readonly walLimitBytes?: number
  /** Whether to read the whole file for damage. Default: true. */
  readonly isChecked?: boolean
}

/**
 * Opens a database for writing, readable by the server's user alone, and brings its schema up to date. Throws what SQLite and the system do
 * besides what is said here: {@link unusable} puts that into words.
 * @throws CarpoolError `data-unusable` if it is damaged or was written by a newer Carpool
 */
export function openForWriting(path: string, options: OpenOptions): DatabaseSync {
  const { store, migrations, busyTimeoutMs, synchronous, isExclusive = false, walLimitBytes, isChecked = true } = options
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs, enableDoubleQuotedStringLiterals: false })
  try {
    // By path: closing a descriptor of the file would give up every lock that this process has on it.
    chmodSync(path, 0o600)
    if (isExclusive) database.exec('PRAGMA locking_mode = EXCLUSIVE')
    database.exec('PRAGMA journal_mode = WAL')
    database.exec(`PRAGMA synchronous = ${synchronous}`)
    database.exec('PRAGMA foreign_keys = ON')
    if (walLimitBytes !== undefined) database.exec(`PRAGMA journal_size_limit = ${walLimitBytes}`)
    migrate(database, store.name, migrations)
    if (isChecked) checkIntegrity(database, store)
    return database
  } catch (cause) {
    database.close()
    throw cause
  }
}

/** Opens a database that is there, for reading alone. */
export function openForReading(path: string, busyTimeoutMs: number): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs, enableDoubleQuotedStringLiterals: false })
}

/** Reads the whole file. @throws CarpoolError `data-unusable` if it is damaged */
export function checkIntegrity(database: DatabaseSync, { damaged }: StoreName): void {
  const finding = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  if (finding !== 'ok') throw new CarpoolError('data-unusable', damaged, { cause: finding })
}
