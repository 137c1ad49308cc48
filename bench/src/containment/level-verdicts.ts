import { megabytes } from '../lib/quantities.ts'
import { atMost, type Verdict } from '../lib/verdict.ts'
import { meanHostBytes, type Level } from './process-level.ts'

const MEMORY = { factor: 1.25, plusBytes: 32 * 2 ** 20 }
const SPARE_DESCRIPTORS = 2

/** Whether all that a server and its hosts hold is back where it was. */
export function levelVerdicts(before: Level, after: Level): Verdict[] {
  const memoryLimit = (bytes: number): number => bytes * MEMORY.factor + MEMORY.plusBytes
  const hostLimit = memoryLimit(meanHostBytes(before))
  return [
    atMost(
      'demand',
      'soak: descriptors of the server',
      after.server.descriptors,
      before.server.descriptors + SPARE_DESCRIPTORS,
      String,
    ),
    atMost('demand', 'soak: threads of the server', after.server.threads, before.server.threads, String),
    atMost('demand', 'soak: processes', after.processes, before.processes, String),
    atMost(
      'demand',
      'soak: memory of the server',
      after.server.residentBytes,
      memoryLimit(before.server.residentBytes),
      megabytes,
    ),
    atMost('demand', 'soak: memory of a host, on the mean', meanHostBytes(after), hostLimit, megabytes),
  ]
}
