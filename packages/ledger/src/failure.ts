export const DAMAGED =
  'The ledger, ledger.sqlite in the data folder, is damaged. Move it away, with ledger.sqlite-wal if there is one, and start again: ' +
  'a new ledger is begun. Keep the old file; ".recover" of the sqlite3 shell reads from it what can be read.'

/** Primary result codes of SQLite, https://sqlite.org/rescode.html. */
const SQLITE_ERROR = 1
const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26

const DESCRIPTIONS = new Map([
  [SQLITE_BUSY, 'The ledger, ledger.sqlite in the data folder, is locked by another process.'],
  [SQLITE_READONLY, 'The ledger, ledger.sqlite in the data folder, is read-only.'],
  [SQLITE_IOERR, 'The disk fails at the ledger, ledger.sqlite in the data folder.'],
  [SQLITE_CORRUPT, DAMAGED],
  [SQLITE_FULL, 'The disk of the data folder is full: the ledger cannot be written.'],
  [SQLITE_CANTOPEN, 'The ledger, ledger.sqlite in the data folder, cannot be opened.'],
  [SQLITE_NOTADB, DAMAGED],
])

/** What SQLite failed at, in words for an operator. */
export function describeFailure(cause: unknown): string {
  const description = DESCRIPTIONS.get(resultCode(cause) ?? -1)
  if (description !== undefined) return description
  // What the system says has paths in it, which are nobody's business but the log's.
  const systemCode = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
  return `The ledger, ledger.sqlite in the data folder, cannot be used${systemCode}.`
}

/** Whether the file is no sound ledger: also if it lacks a table that its version has, or has one that it should not have yet. */
export function isDamage(cause: unknown): boolean {
  return [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_ERROR].includes(resultCode(cause) ?? -1)
}

function resultCode(cause: unknown): number | undefined {
  return cause instanceof Error && 'errcode' in cause ? Number(cause.errcode) & 0xff : undefined
}
