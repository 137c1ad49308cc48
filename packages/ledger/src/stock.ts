import type { DatabaseSync } from 'node:sqlite'
import { transact } from '@carpool/sqlite'
import { HourlySums } from './hourly-sums.ts'
import type { WriterReady } from './writer-messages.ts'

/** Adds what a process that was killed left out of the totals, and reads what the main thread has to know. */
export function takeStock(database: DatabaseSync): Pick<WriterReady, 'lastSequence' | 'revisions' | 'ran'> {
  const lastSequence = database
    .prepare(
      `SELECT max((SELECT sequence FROM totals_through), coalesce((SELECT max(sequence) FROM invocations), 0),
        coalesce((SELECT max(sequence) FROM background), 0)) AS value`,
    )
    .get()?.['value']
  transact(database, () => new HourlySums(database).storeTail(Number(lastSequence)))
  const revisions = database.prepare('SELECT key, function, revision, owner, memory_mb FROM revisions ORDER BY key').all()
  const ran = database.prepare(
    'SELECT DISTINCT revisions.revision FROM totals JOIN revisions ON revisions.key = totals.revision WHERE invocations > 0',
  )
  return {
    lastSequence: Number(lastSequence),
    revisions: revisions.map((row) => ({
      key: Number(row['key']),
      functionName: String(row['function']),
      revision: String(row['revision']),
      owner: String(row['owner']),
      memoryMb: Number(row['memory_mb']),
    })),
    ran: ran.all().map((row) => String(row['revision'])),
  }
}
