import type { ErrorCode, InvocationQuery, InvocationRecord, UsageQuery, UsageRow } from '@carpool/core'
import type { JournalPosition } from './journal-format.ts'

/** Questions to the thread of the database, with their answers. */
export interface Questions {
  readonly usage: { readonly query: UsageQuery; readonly answer: UsageRow[] }
  readonly invocations: { readonly query: InvocationQuery; readonly answer: InvocationRecord[] }
}

export type QuestionKind = keyof Questions

export interface ThreadStart {
  readonly dataDir: string
  /** The journal is written up to there; undefined: all of it was written by a process that has ended. */
  readonly upTo: JournalPosition | undefined
  /** Records up to this one were brought in by a thread before. */
  readonly afterSequence: number
}

/** To the thread of the database. */
export type ToThread =
  /** The journal is written up to there. */
  | { readonly kind: 'written'; readonly upTo: JournalPosition }
  | {
      readonly kind: 'question'
      readonly id: number
      readonly about: QuestionKind
      readonly query: Questions[QuestionKind]['query']
      /** What was written before it was asked. */
      readonly upTo: JournalPosition
    }
  /** Rows of hours that ended before this may go. */
  | { readonly kind: 'retention'; readonly beforeMs: number }
  /** The journal is written. The thread ends when all of it is in the database. */
  | { readonly kind: 'close' }

export interface ThreadReady {
  readonly kind: 'ready'
  /** The last record that was ever written, or 0. */
  readonly through: number
  /** A number that no file of the journal has. */
  readonly nextFile: number
  /** Ids of the revisions that have run. */
  readonly ran: readonly string[]
  /** Whether the whole file was read and found sound. */
  readonly isChecked: boolean
}

/** From the thread of the database. It ends with a CarpoolError `data-unusable` if the files cannot be used. */
export type FromThread =
  | ThreadReady
  /** Everything up to this record is in the database, and it can be written. */
  | { readonly kind: 'imported'; readonly through: number }
  /** Writing fails, and is tried again. */
  | { readonly kind: 'blocked'; readonly message: string; readonly cause: string; readonly isDamage: boolean }
  | { readonly kind: 'problem'; readonly message: string }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Questions[QuestionKind]['answer'] }
  | {
      readonly kind: 'no answer'
      readonly id: number
      readonly code: ErrorCode
      readonly message: string
      readonly cause: string
    }
