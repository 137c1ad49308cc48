export { Meter, type FunctionUsage } from './meter.ts'
