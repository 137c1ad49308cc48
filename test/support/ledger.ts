import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'

/** A row of the view that joins an invocation with the names of its function, revision and owner. */
export type LedgerRow = Readonly<Record<string, string | number | null>>

/** The records in a data folder, oldest first, read as any other program would. */
export function readLedger(dataDir: string): LedgerRow[] {
  const database = new DatabaseSync(join(dataDir, 'ledger.sqlite'), { readOnly: true })
  try {
    return database.prepare('SELECT * FROM invocation_records ORDER BY sequence').all() as LedgerRow[]
  } finally {
    database.close()
  }
}

/** The records of one function in the data folder of a server, oldest first. */
export function rowsOf({ dataDir }: { readonly dataDir: string }, functionName: string): LedgerRow[] {
  return readLedger(dataDir).filter((row) => row['function'] === functionName)
}
