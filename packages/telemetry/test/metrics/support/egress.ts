import type { EgressReading } from '../../../src/metrics/egress-metrics.ts'

export const EGRESS: EgressReading = {
  ended: { ok: 100, refused: 7, failed: 3, aborted: 1 },
  open: 12,
  waiting: 2,
  connections: 15,
  memoryBytes: 4096,
}
