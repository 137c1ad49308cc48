import type { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'

/** Why calls of a function are refused, and since when. */
export interface DisabledInfo {
  readonly owner: string
  /** Completes "it is disabled because …". */
  readonly reason: string
  /** ISO 8601. */
  readonly at: string
}

/** The functions whose calls are refused: in memory, and on the disk so that a restart does not enable them. */
export class DisabledFunctions {
  readonly #database: DatabaseSync
  readonly #disabled = new Map<string, DisabledInfo>()
  /** Those that are not on the disk yet. */
  readonly #unwritten = new Set<string>()

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

  /**
   * In force at once, for a full disk must not keep harmful code running. One that is disabled already keeps its info; if that
   * was not written yet, this tries again.
   * @throws what the database throws, if it is in force but a restart would forget it
   */
  add(functionName: string, given: DisabledInfo): void {
    const known = this.#disabled.get(functionName)
    if (known !== undefined && !this.#unwritten.has(functionName)) return
    const info = known ?? given
    this.#disabled.set(functionName, info)
    this.#unwritten.add(functionName)
    const { owner, reason, at } = info
    this.#database
      .prepare('INSERT OR REPLACE INTO disabled (function_name, owner, reason, at) VALUES (?, ?, ?, ?)')
      .run(functionName, owner, reason, at)
    this.#unwritten.delete(functionName)
  }

  remove(functionName: string): void {
    if (!this.#disabled.has(functionName)) return
    this.#database.prepare('DELETE FROM disabled WHERE function_name = ?').run(functionName)
    this.#disabled.delete(functionName)
    this.#unwritten.delete(functionName)
  }
}

/** What a call of a function that is disabled is answered. */
export function functionDisabled(name: string, { reason, at }: DisabledInfo): CarpoolError {
  return new CarpoolError(
    'function-disabled',
    `${name} is disabled since ${at} because ${reason}. An operator can enable it with "carpool enable ${name}".`,
  )
}
