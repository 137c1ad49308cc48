import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { TOKEN_SCOPES, type TokenScope } from '@carpool/core'

/** A token as it is kept. Times in ms of the epoch. */
export interface StoredToken {
  readonly id: string
  readonly hash: Uint8Array
  readonly owner: string
  readonly scopes: readonly TokenScope[]
  readonly createdAtMs: number
  readonly expiresAtMs: number | undefined
  readonly lastUsedAtMs: number | undefined
}

/** The records of tokens. */
export class TokenTable {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  all(): StoredToken[] {
    return this.#database.prepare('SELECT * FROM tokens ORDER BY created_at_ms, id').all().map(storedToken)
  }

  insert({ id, hash, owner, scopes, createdAtMs, expiresAtMs }: StoredToken): void {
    this.#database
      .prepare('INSERT INTO tokens (id, hash, owner, scopes, created_at_ms, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)')
      .run(id, hash, owner, JSON.stringify(scopes), createdAtMs, expiresAtMs ?? null)
  }

  remove(id: string): void {
    this.#database.prepare('DELETE FROM tokens WHERE id = ?').run(id)
  }

  used(id: string, atMs: number): void {
    this.#database.prepare('UPDATE tokens SET last_used_at_ms = ? WHERE id = ?').run(atMs, id)
  }
}

function storedToken(row: Record<string, SQLOutputValue>): StoredToken {
  const optional = (name: string): number | undefined => (row[name] === null ? undefined : Number(row[name]))
  const scopes = JSON.parse(String(row['scopes'])) as readonly string[]
  return {
    id: String(row['id']),
    hash: row['hash'] as Uint8Array,
    owner: String(row['owner']),
    // A scope of another version of Carpool allows nothing here.
    scopes: TOKEN_SCOPES.filter((scope) => scopes.includes(scope)),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: optional('expires_at_ms'),
    lastUsedAtMs: optional('last_used_at_ms'),
  }
}
