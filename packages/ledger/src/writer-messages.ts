import type { RevisionRow } from './batch-writer.ts'
import type { RingMemory } from './ring.ts'

export interface WriterStart {
  readonly path: string
  readonly memory: RingMemory
}

/** To the thread that writes. */
export type ToWriter =
  | { readonly kind: 'revision'; readonly revision: RevisionRow }
  /** Rows of hours that ended before this may go. */
  | { readonly kind: 'retention'; readonly beforeMs: number }

/** From the thread that writes. */
export type FromWriter =
  | WriterReady
  /** The file cannot be used; the thread ends. */
  | { readonly kind: 'unusable'; readonly message: string }
  /** There are more rows than before: the count is in shared memory. */
  | { readonly kind: 'committed' }
  /** Writing failed, and is tried again. */
  | { readonly kind: 'blocked'; readonly message: string; readonly cause: string }
  | { readonly kind: 'unblocked' }

export interface WriterReady {
  readonly kind: 'ready'
  /** The last one that was ever written, or 0. */
  readonly lastSequence: number
  readonly revisions: readonly RevisionRow[]
  /** Ids of the revisions that have run. */
  readonly ran: readonly string[]
  /** Whether the whole file was read and found sound. */
  readonly isChecked: boolean
}
