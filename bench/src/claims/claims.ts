import type { Claim } from './claim.ts'
import { CONTAINMENT_CLAIMS } from './table/containment.ts'
import { DEMO_CLAIMS } from './table/demo.ts'
import { ISOLATION_CLAIMS } from './table/isolation.ts'
import { METERING_CLAIMS } from './table/metering.ts'
import { SCALING_CLAIMS } from './table/scaling.ts'
import { SINGLE_CLAIMS } from './table/single.ts'
import { STREAMING_CLAIMS } from './table/streaming.ts'

/** Everything that the texts say and a bench measures. */
export const CLAIMS: readonly Claim[] = [
  ...DEMO_CLAIMS,
  ...SINGLE_CLAIMS,
  ...METERING_CLAIMS,
  ...SCALING_CLAIMS,
  ...CONTAINMENT_CLAIMS,
  ...ISOLATION_CLAIMS,
  ...STREAMING_CLAIMS,
]
