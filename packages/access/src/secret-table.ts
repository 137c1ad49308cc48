import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { transact } from '@carpool/storage'

/** The function whose secrets they are. */
export interface SecretHolder {
  readonly owner: string
  readonly functionName: string
}

/** A secret as it is kept. Times in ms of the epoch. */
export interface StoredSecret {
  readonly key: string
  readonly createdAtMs: number
  readonly updatedAtMs: number
  readonly sealed: Uint8Array
}

/** One secret of a function, with the version that the change gives all of them. */
export interface SecretRow extends SecretHolder {
  readonly version: number
  readonly key: string
}

/** The records of secrets. */
export class SecretTable {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** The functions that have secrets, or had some while they were deployed, with the version of these. */
  versions(): Array<SecretHolder & { readonly version: number }> {
    return this.#database
      .prepare('SELECT owner, function, version FROM secret_sets')
      .all()
      .map((row) => ({ owner: String(row['owner']), functionName: String(row['function']), version: Number(row['version']) }))
  }

  lastVersion(): number {
    return Number(this.#database.prepare('SELECT version FROM last_secret_version').get()?.['version'])
  }

  of({ owner, functionName }: SecretHolder): StoredSecret[] {
    return this.#database
      .prepare('SELECT * FROM secrets WHERE owner = ? AND function = ? ORDER BY key')
      .all(owner, functionName)
      .map(storedSecret)
  }

  put(row: SecretRow, { createdAtMs, updatedAtMs, sealed }: Omit<StoredSecret, 'key'>): void {
    const { owner, functionName, key } = row
    transact(this.#database, () => {
      this.#setVersion(row)
      this.#database
        .prepare(
          `INSERT INTO secrets (owner, function, key, created_at_ms, updated_at_ms, sealed) VALUES (?, ?, ?, ?, ?, ?)
           ON CONFLICT (owner, function, key) DO UPDATE SET updated_at_ms = excluded.updated_at_ms, sealed = excluded.sealed`,
        )
        .run(owner, functionName, key, createdAtMs, updatedAtMs, sealed)
    })
  }

  delete(row: SecretRow): void {
    const { owner, functionName, key } = row
    transact(this.#database, () => {
      this.#setVersion(row)
      this.#database.prepare('DELETE FROM secrets WHERE owner = ? AND function = ? AND key = ?').run(owner, functionName, key)
    })
  }

  deleteAll({ owner, functionName }: SecretHolder): void {
    this.#database.prepare('DELETE FROM secret_sets WHERE owner = ? AND function = ?').run(owner, functionName)
  }

  #setVersion({ owner, functionName, version }: SecretRow): void {
    this.#database.prepare('UPDATE last_secret_version SET version = max(version, ?)').run(version)
    this.#database
      .prepare(
        `INSERT INTO secret_sets (owner, function, version) VALUES (?, ?, ?)
         ON CONFLICT (owner, function) DO UPDATE SET version = excluded.version`,
      )
      .run(owner, functionName, version)
  }
}

function storedSecret(row: Record<string, SQLOutputValue>): StoredSecret {
  return {
    key: String(row['key']),
    createdAtMs: Number(row['created_at_ms']),
    updatedAtMs: Number(row['updated_at_ms']),
    sealed: row['sealed'] as Uint8Array,
  }
}
