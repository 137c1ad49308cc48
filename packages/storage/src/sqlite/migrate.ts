import type { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'
import { transact } from './transact.ts'

/**
 * Brings the schema up to date, each step in a transaction of its own.
 * @param name what the store is called in messages, such as `ledger`
 * @param migrations one entry for each version of the schema; entries are only ever added. `user_version` counts those that were applied.
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
