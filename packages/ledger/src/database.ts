import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import * as sqlite from '@carpool/storage'
import { STORE, unusable } from './failure.ts'
import { MIGRATIONS } from './schema.ts'

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
    database = sqlite.openForWriting(path, {
      store: STORE,
      migrations: MIGRATIONS,
      busyTimeoutMs: BUSY_TIMEOUT_MS,
      synchronous: 'NORMAL',
      walLimitBytes: WAL_LIMIT_BYTES,
      isChecked: false,
    })
    const isChecked = sizeBytes(path) <= limitBytes
    if (isChecked) checkIntegrity(database)
    return { database, isChecked }
  } catch (cause) {
    database?.close()
    throw unusable(cause)
  }
}

export function openForReading(path: string): DatabaseSync {
  return sqlite.openForReading(path, BUSY_TIMEOUT_MS)
}

/** Reads the whole file. @throws CarpoolError `data-unusable` if it is damaged */
export function checkIntegrity(database: DatabaseSync): void {
  sqlite.checkIntegrity(database, STORE)
}

function sizeBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** The result says whether there is still the same file at the path as now. */
export function fileIdentity(path: string): () => boolean {
  const { dev, ino } = statSync(path)
  return () => {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats !== undefined && stats.dev === dev && stats.ino === ino
  }
}

/** Ids of the revisions of which any invocation ran. */
export function revisionsThatRan(database: DatabaseSync): string[] {
  const rows = database
    .prepare(
      'SELECT DISTINCT revisions.revision FROM totals JOIN revisions ON revisions.key = totals.revision WHERE invocations > 0',
    )
    .all()
  return rows.map((row) => String(row['revision']))
}
