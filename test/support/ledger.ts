import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { TestServer } from './server.ts'

/** A row of the view that joins an invocation with the names of its function, revision and owner. */
export type LedgerRow = Readonly<Record<string, string | number | null>>

/** The records in the database of a data folder, oldest first, read as any other program would. */
export function readLedger(dataDir: string): LedgerRow[] {
  const database = new DatabaseSync(join(dataDir, 'ledger.sqlite'), { readOnly: true })
  try {
    return database.prepare('SELECT * FROM invocation_records ORDER BY sequence').all() as LedgerRow[]
  } finally {
    database.close()
  }
}

/** The records of one function that a server has written, oldest first. */
export async function rowsOf(server: TestServer, functionName: string): Promise<LedgerRow[]> {
  await server.recorded()
  return readLedger(server.dataDir).filter((row) => row['function'] === functionName)
}
