import type { DatabaseSync } from 'node:sqlite'

/** Why calls of a function are refused, and since when. */
export interface DisabledInfo {
  readonly owner: string
  /** Completes "it is disabled because …". */
  readonly reason: string
  /** ISO 8601. */
  readonly at: string
}

/** The functions whose calls are refused: in memory, and on disk before it is in force. */
export class DisabledFunctions {
  readonly #database: DatabaseSync
  readonly #disabled = new Map<string, DisabledInfo>()

  constructor(database: DatabaseSync) {
    this.#database = database
    for (const row of database.prepare('SELECT function_name, owner, reason, at FROM disabled').all()) {
      const info = { owner: String(row['owner']), reason: String(row['reason']), at: String(row['at']) }
      this.#disabled.set(String(row['function_name']), info)
    }
  }

  get(functionName: string): DisabledInfo | undefined {
    return this.#disabled.get(functionName)
  }

  add(functionName: string, info: DisabledInfo): void {
    const { owner, reason, at } = info
    this.#database
      .prepare('INSERT OR REPLACE INTO disabled (function_name, owner, reason, at) VALUES (?, ?, ?, ?)')
      .run(functionName, owner, reason, at)
    this.#disabled.set(functionName, info)
  }

  remove(functionName: string): void {
    if (!this.#disabled.has(functionName)) return
    this.#database.prepare('DELETE FROM disabled WHERE function_name = ?').run(functionName)
    this.#disabled.delete(functionName)
  }
}
