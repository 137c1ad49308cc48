import { CarpoolError } from '@carpool/core'
import { resultCode } from './result-code.ts'

/** A database of the data folder, as messages speak of it. */
export interface StoreName {
  /** Such as `ledger`. */
  readonly name: string
  /** Such as `ledger.sqlite`. */
  readonly file: string
  /** What to tell whoever has a file that is damaged. */
  readonly damaged: string
}

/** Whether the file is no sound store: also if it lacks a table that its version has, or has one that it should not have yet. */
export function isDamage(cause: unknown): boolean {
  return ['corrupt', 'not-a-database', 'error'].includes(resultCode(cause) ?? '')
}

/** What SQLite or the system failed at, in words for an operator. Holds no path: what the system says has some. */
export function describeFailure({ name, file, damaged }: StoreName, cause: unknown): string {
  const which = `The ${name}, ${file} in the data folder,`
  switch (resultCode(cause)) {
    case 'busy':
      return `${which} is locked by another process.`
    case 'read-only':
      return `${which} is read-only.`
    case 'io-error':
      return `The disk fails at the ${name}, ${file} in the data folder.`
    case 'full':
      return `The disk of the data folder is full: the ${name} cannot be written.`
    case 'cannot-open':
      return `${which} cannot be opened.`
    case 'corrupt':
    case 'not-a-database':
      return damaged
    case 'error':
    case undefined: {
      const systemCode = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
      return `${which} cannot be used${systemCode}.`
    }
  }
}

/** What was caught while a store was opened or read, as a CarpoolError `data-unusable`; one that is a CarpoolError stays as it is. */
export function unusable(store: StoreName, cause: unknown): CarpoolError {
  if (cause instanceof CarpoolError) return cause
  return new CarpoolError('data-unusable', isDamage(cause) ? store.damaged : describeFailure(store, cause), { cause })
}
