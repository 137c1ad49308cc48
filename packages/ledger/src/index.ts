export type { LedgerProblem } from './failure.ts'
export { openLedger, type Ledger, type LedgerOptions } from './ledger.ts'
export { Meter, type FunctionCounts, type MeterOptions } from './meter.ts'
