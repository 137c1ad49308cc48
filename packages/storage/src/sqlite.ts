import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'

export interface OpenOptions {
  readonly store: StoreName
  /** See {@link migrate}. */
  readonly migrations: readonly string[]
  /** How long to wait for a lock that another process holds, in ms. */
  readonly busyTimeoutMs: number
  /**
   * `FULL`: what is committed outlives a power cut. `NORMAL`: it outlives the process, and the file is sound after a power cut.
   */
  readonly synchronous: 'FULL' | 'NORMAL'
  /** Locks the file for this connection, until it is closed. Default: false. */
  readonly isExclusive?: boolean
  /** What the write-ahead log is cut back to after it has grown, in bytes. Default: it stays as large as it became. */
  readonly walLimitBytes?: number
  /** Whether to read the whole file for damage. Default: true. */
  readonly isChecked?: boolean
}

/**
 * Opens a database for writing, readable by the server's user alone, and brings its schema up to date. Errors of SQLite and the
 * system come as they are: {@link unusable} puts them into words.
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

/**
 * Brings the schema up to date, each step in a transaction of its own.
 * @param name what the store is called in messages, such as `ledger`
 * @param migrations one entry for each version of the schema; entries are only ever added. `user_version` counts the applied
 * ones.
 * @throws CarpoolError `data-unusable` if a newer Carpool wrote it; the file stays as it is
 */
export function migrate(database: DatabaseSync, name: string, migrations: readonly string[]): void {
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
  if (version > migrations.length) {
    throw new CarpoolError(
      'data-unusable',
      `The data folder was written by a newer Carpool: its ${name} has version ${version}, and this Carpool reads up to ${migrations.length}.`,
    )
  }
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue
    transact(database, () => {
      database.exec(migration)
      database.exec(`PRAGMA user_version = ${index + 1}`)
    })
  }
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

/** A database of the data folder, as messages speak of it. */
export interface StoreName {
  /** Such as `ledger`. */
  readonly name: string
  /** Such as `ledger.sqlite`. */
  readonly file: string
  /** The message if the file is damaged. */
  readonly damaged: string
}

/** Whether the file is damaged: also if it lacks a table that its version has, or has one that it should not have yet. */
export function isDamage(cause: unknown): boolean {
  return ['corrupt', 'not-a-database', 'error'].includes(resultCode(cause) ?? '')
}

/** What SQLite or the system failed at, in words for an operator. Holds no path: the messages of the system do. */
export function describeFailure({ name, file, damaged }: StoreName, cause: unknown): string {
  const which = `The ${name}, ${file} in the data folder,`
  switch (resultCode(cause)) {
    case 'busy':
      return `${which} is locked by another process.`
    case 'read-only':
      return `${which} is read-only.`
    case 'io-error':
      return `The disk fails at the ${name}, ${file} in the data folder.`
    case 'full':
      return `The disk of the data folder is full: the ${name} cannot be written.`
    case 'cannot-open':
      return `${which} cannot be opened.`
    case 'corrupt':
    case 'not-a-database':
      return damaged
    case 'error':
    case undefined: {
      const systemCode = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
      return `${which} cannot be used${systemCode}.`
    }
  }
}

/**
 * What was caught while a store was opened or read, as a CarpoolError `data-unusable`; one that is a CarpoolError stays as it is.
 */
export function unusable(store: StoreName, cause: unknown): CarpoolError {
  if (cause instanceof CarpoolError) return cause
  return new CarpoolError('data-unusable', isDamage(cause) ? store.damaged : describeFailure(store, cause), { cause })
}

/** The primary result codes of SQLite that Carpool distinguishes, https://sqlite.org/rescode.html. */
const NAMES = {
  1: 'error',
  5: 'busy',
  8: 'read-only',
  10: 'io-error',
  11: 'corrupt',
  13: 'full',
  14: 'cannot-open',
  26: 'not-a-database',
} as const

export type ResultCode = (typeof NAMES)[keyof typeof NAMES]

/** Only the low byte is the primary code; the others say more of the same. */
const PRIMARY_MASK = 0xff

/** What SQLite failed with; undefined if the cause is no error of SQLite, or one that has no name here. */
export function resultCode(cause: unknown): ResultCode | undefined {
  if (!(cause instanceof Error) || !('errcode' in cause)) return undefined
  return (NAMES as Readonly<Record<number, ResultCode>>)[Number(cause.errcode) & PRIMARY_MASK]
}
