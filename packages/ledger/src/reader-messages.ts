import type { ErrorCode, InvocationQuery, InvocationRecord, UsageQuery, UsageRow } from '@carpool/core'

/** What a thread that reads is asked for, and what it gives. */
export interface ReaderRequests {
  readonly usage: { readonly query: UsageQuery; readonly answer: UsageRow[] }
  readonly invocations: { readonly query: InvocationQuery; readonly answer: InvocationRecord[] }
  /** Reads the whole file: fails if it is damaged. */
  readonly check: { readonly query: null; readonly answer: null }
}

export type ReaderKind = keyof ReaderRequests

export interface ToReader {
  readonly id: number
  readonly kind: ReaderKind
  readonly query: ReaderRequests[ReaderKind]['query']
}

export type FromReader =
  | { readonly id: number; readonly answer: ReaderRequests[ReaderKind]['answer'] }
  | { readonly id: number; readonly error: { readonly code: ErrorCode; readonly message: string; readonly cause: string } }
