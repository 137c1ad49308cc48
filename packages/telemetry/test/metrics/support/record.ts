import { NO_USAGE, type InvocationRecord } from '@carpool/core'

/** A call that used nothing. */
export const RECORD: InvocationRecord = {
  ...NO_USAGE,
  id: 'one',
  functionName: 'sample',
  revision: '0123456789abcdef',
  owner: 'someone',
  trigger: 'http',
  startedAtMs: 1_800_000_000_000,
  start: 'warm',
  outcome: 'ok',
  status: 200,
  host: 1,
  queueUs: 0,
  wallUs: 0,
  memoryMb: 128,
  bytesIn: 0,
  bytesOut: 0,
}
