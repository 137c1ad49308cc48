export { Account } from './account.ts'
export { InstanceTime } from './instance-time.ts'
export { StaySize } from './stay-size.ts'
export { Meter, type FunctionCounts, type MeterOptions } from './meter.ts'
