import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { BenchServer } from '../lib/bench-server.ts'

/** What these benches want to know of an invocation's record. */
export interface LedgerRecord {
  readonly id: string
  readonly functionName: string
  /** An outcome, or the code of the error by which the call was refused. */
  readonly end: string
  readonly startedAtMs: number
  readonly cpuMs: number
  readonly attempts: number
}

/** The records of everything that a server has answered: to tell of its usage it brings them into the file. */
export async function recordsOf(server: BenchServer): Promise<LedgerRecord[]> {
  await server.carpool.usage('owner')
  return readLedger(server.dataDir)
}

/** All records in the file of a data folder, read from it as any other program would: the control plane gives 1,000 at most. */
export function readLedger(dataDir: string): LedgerRecord[] {
  const database = new DatabaseSync(join(dataDir, 'ledger.sqlite'), { readOnly: true })
  try {
    return database
      .prepare('SELECT id, function, outcome, error, started_at_ms, cpu_us, attempts FROM invocation_records ORDER BY sequence')
      .all()
      .map((row) => ({
        id: String(row['id']),
        functionName: String(row['function']),
        end: String(row['error'] ?? row['outcome']),
        startedAtMs: Number(row['started_at_ms']),
        cpuMs: Number(row['cpu_us']) / 1000,
        attempts: Number(row['attempts']),
      }))
  } finally {
    database.close()
  }
}
