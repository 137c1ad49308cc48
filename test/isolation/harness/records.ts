import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { TestServer } from '../../support/server.ts'
import type { LedgerRow } from '../../support/ledger.ts'
import { within } from './within.ts'

/** The records of one function, the oldest first: of all calls that were answered. */
export async function recordsOf(server: TestServer, functionName: string): Promise<LedgerRow[]> {
  await server.recorded()
  const database = new DatabaseSync(join(server.dataDir, 'ledger.sqlite'), { readOnly: true })
  try {
    return database
      .prepare('SELECT * FROM invocation_records WHERE function = ? ORDER BY sequence')
      .all(functionName) as LedgerRow[]
  } finally {
    database.close()
  }
}

/** What is not recorded after as long as this will not be, in ms. */
const PATIENCE_MS = 15_000

/** Waits until a function has so many records, but not for ever: a call that was cut off is recorded when its function ends. */
export async function untilRecorded(server: TestServer, functionName: string, count: number): Promise<LedgerRow[]> {
  let records: LedgerRow[] = []
  await within(PATIENCE_MS, async () => (records = await recordsOf(server, functionName)).length >= count)
  return records
}
