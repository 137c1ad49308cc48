export { openLedger } from './ledger.ts'
export type { Ledger, LedgerOptions, LedgerProblem } from './ledger-types.ts'
export { Meter, type FunctionCounts, type MeterOptions } from './meter.ts'
