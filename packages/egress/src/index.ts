export { createEgress, type Egress, type EgressOptions, type EgressRequest, type EgressResult } from './egress.ts'
export type { Resolve } from './guarded-connector.ts'
