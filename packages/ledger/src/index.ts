export { openLedger } from './ledger.ts'
export type { Ledger, LedgerOptions, LedgerProblem } from './ledger-types.ts'
