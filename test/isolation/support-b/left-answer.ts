import type { LedgerRow } from '../../support/ledger.ts'
import type { Answer } from '../harness/call.ts'

/** In place of an answer, for the record of a call whose client had left: nobody saw one, and it is billed all the same. */
export function leftAnswer({ id }: LedgerRow, path = '/'): Answer {
  return { path, status: 0, code: '', text: '', headers: new Headers(), id: String(id), tookMs: 0 }
}
