import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import type { TestServer } from './server.ts'

/** A row of the view that joins an invocation with the names of its function, revision and owner. */
export type LedgerRow = Readonly<Record<string, string | number | null>>

/** The records in the database of a data folder, oldest first, read as any other program would. */
export function readLedger(dataDir: string): LedgerRow[] {
  return select(dataDir, 'SELECT * FROM invocation_records ORDER BY sequence')
}

/** The records of one function that a server has written, oldest first. */
export async function rowsOf(server: TestServer, functionName: string): Promise<LedgerRow[]> {
  await server.recorded()
  return readLedger(server.dataDir).filter((row) => row['function'] === functionName)
}

/** What one function has used besides its invocations, a row for each report, oldest first. */
export async function backgroundRowsOf(server: TestServer, functionName: string): Promise<LedgerRow[]> {
  await server.recorded()
  const rows = select(
    server.dataDir,
    'SELECT function, background.* FROM background JOIN revisions ON key = background.revision ORDER BY sequence',
  )
  return rows.filter((row) => row['function'] === functionName)
}

function select(dataDir: string, query: string): LedgerRow[] {
  const database = new DatabaseSync(join(dataDir, 'ledger.sqlite'), { readOnly: true })
  try {
    return database.prepare(query).all() as LedgerRow[]
  } finally {
    database.close()
  }
}
