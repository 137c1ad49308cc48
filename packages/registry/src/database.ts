import { chmodSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'

/** One entry for each version of the schema; entries are only ever added. `user_version` counts those that were applied. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE functions (
    name TEXT PRIMARY KEY,
    live_id TEXT NOT NULL,
    FOREIGN KEY (name, live_id) REFERENCES revisions (function_name, id) DEFERRABLE INITIALLY DEFERRED
  ) STRICT;

  CREATE TABLE revisions (
    function_name TEXT NOT NULL REFERENCES functions (name) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    form TEXT NOT NULL,
    created_at TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    code_bytes INTEGER NOT NULL,
    source_map_hash TEXT NOT NULL,
    config TEXT NOT NULL CHECK (json_valid(config)),
    PRIMARY KEY (function_name, id)
  ) STRICT;
  CREATE INDEX revisions_by_code ON revisions (code_hash);
  CREATE INDEX revisions_by_source_map ON revisions (source_map_hash);

  CREATE TABLE code_caches (
    code_hash TEXT NOT NULL,
    version_key TEXT NOT NULL,
    cache_hash TEXT NOT NULL,
    PRIMARY KEY (code_hash, version_key)
  ) STRICT;
  CREATE INDEX code_caches_by_hash ON code_caches (cache_hash);
  `,
]

const SQLITE_BUSY = 5
const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26

/**
 * Opens the database, locks it for this process, and brings its schema up to date.
 * @throws CarpoolError `data-unusable` if it is damaged, in use by another server, or written by a newer Carpool
 */
export function openDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 0, enableDoubleQuotedStringLiterals: false })
  try {
    // It holds the functions' environment. By path: closing a descriptor of the file would give up every lock this process has on it.
    chmodSync(path, 0o600)
    // Routes live in memory, so a second server on the same folder would answer with old code and delete new bundles.
    database.exec('PRAGMA locking_mode = EXCLUSIVE')
    database.exec('PRAGMA journal_mode = WAL')
    database.exec('PRAGMA synchronous = FULL')
    database.exec('PRAGMA foreign_keys = ON')
    migrate(database)
    checkIntegrity(database)
    return database
  } catch (cause) {
    database.close()
    throw explain(cause)
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

function migrate(database: DatabaseSync): void {
  const version = Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
  if (version > MIGRATIONS.length) {
    throw new CarpoolError(
      'data-unusable',
      `The data folder was written by a newer Carpool: its registry has version ${version}, and this Carpool reads up to ${MIGRATIONS.length}.`,
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

function checkIntegrity(database: DatabaseSync): void {
  const finding = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check']
  if (finding !== 'ok') throw damaged()
}

function explain(cause: unknown): unknown {
  const errcode = cause instanceof Error && 'errcode' in cause ? Number(cause.errcode) & 0xff : undefined
  if (errcode === SQLITE_BUSY) {
    return new CarpoolError('data-unusable', 'The data folder is in use by another Carpool server.', { cause })
  }
  return errcode === SQLITE_CORRUPT || errcode === SQLITE_NOTADB ? damaged(cause) : cause
}

function damaged(cause?: unknown): CarpoolError {
  return new CarpoolError('data-unusable', 'The registry database in the data folder is damaged; restore it from a copy.', {
    cause,
  })
}
