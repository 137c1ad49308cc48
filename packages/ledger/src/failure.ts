import type { BackgroundUsage, CarpoolError, InvocationRecord } from '@carpool/core'
import { describeFailure as describe, unusable as unusableStore, type StoreName } from '@carpool/storage'

export const LEDGER_FILE = 'ledger.sqlite'

export const STORE: StoreName = {
  name: 'ledger',
  file: LEDGER_FILE,
  damaged:
    'The ledger, ledger.sqlite in the data folder, is damaged. Move it away, with ledger.sqlite-wal if there is one, and start again: ' +
    'a new ledger is begun. Keep the old file; ".recover" of the sqlite3 shell reads from it what can be read.',
}

/** What an operator should know. */
export interface LedgerProblem {
  readonly message: string
  /** What the database or the thread failed with. */
  readonly cause?: unknown
  /** Records that are not in the ledger and will not be: this is their last copy. */
  readonly lost?: ReadonlyArray<InvocationRecord | BackgroundUsage>
}

/** Why something cannot be written at the moment. Reports each change once. */
export class Failure {
  readonly #onProblem: (problem: LedgerProblem) => void
  #message: string | undefined

  constructor(onProblem: (problem: LedgerProblem) => void) {
    this.#onProblem = onProblem
  }

  /** In words for an operator; undefined: it can be written. */
  get message(): string | undefined {
    return this.#message
  }

  set(message: string, cause: unknown): void {
    const isNew = this.#message !== message
    this.#message = message
    if (isNew) this.#onProblem({ message, cause })
  }

  clear(): void {
    if (this.#message === undefined) return
    this.#message = undefined
    this.#onProblem({ message: 'The ledger is written again.' })
  }
}

/** What SQLite failed at, in words for an operator. */
export function describeFailure(cause: unknown): string {
  return describe(STORE, cause)
}

/** What was caught while the ledger was opened or read, as a CarpoolError. */
export function unusable(cause: unknown): CarpoolError {
  return unusableStore(STORE, cause)
}

/** Why the journal cannot be written, in words for an operator. Holds no path: the messages of the system do. */
export function describeJournalFailure(cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return 'The disk of the data folder is full: the ledger cannot be written.'
    case 'EROFS':
      return 'The data folder is read-only: the ledger cannot be written.'
    case 'EIO':
      return 'The disk of the data folder fails: the ledger cannot be written.'
    default:
      return `The ledger cannot be written (${code}).`
  }
}
