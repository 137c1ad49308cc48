import {
  NO_USAGE,
  resolveLimits,
  type InvocationRecord,
  type InvocationResult,
  type Revision,
  type StartKind,
} from '@carpool/core'
import { Meter, type Metering } from '../../src/index.ts'

export const REVISION: Revision = {
  id: '0123456789abcdef',
  functionName: 'sample',
  owner: 'someone',
  form: 'fetch',
  createdAt: '2026-01-01T00:00:00.000Z',
  codeBytes: 10,
  codeHash: '0'.repeat(64),
  limits: resolveLimits({ memoryMb: 128 }),
  env: {},
}

export interface Write {
  readonly record: InvocationRecord
  readonly instanceUs: number
}

export interface Rig {
  readonly meter: Meter
  readonly writes: Write[]
  /** The clocks that the meter reads, in ms; both to be set. */
  readonly clocks: { monotonicMs: number; epochMs: number }
  /** Every write fails with it, from now on. */
  failWrites(cause: Error): void
  begin(id: string): Metering
}

/** A meter with a ledger in memory, under clocks that stand still until they are set. */
export function meterRig(hasRun: (revision: string) => boolean = () => true): Rig {
  const writes: Write[] = []
  const clocks = { monotonicMs: 1_000, epochMs: 1_800_000_000_000 }
  let failure: Error | undefined
  const meter = new Meter({
    write: async (record, instanceUs) => {
      writes.push({ record, instanceUs })
      if (failure !== undefined) throw failure
    },
    hasRun,
    clock: () => clocks.monotonicMs,
    now: () => clocks.epochMs,
  })
  const request = { method: 'POST', url: 'http://localhost/sample', headers: [], clientIp: '::1', body: Buffer.from('four') }
  return {
    meter,
    writes,
    clocks,
    failWrites: (cause) => (failure = cause),
    begin: (id) => meter.begin({ id, revision: REVISION, trigger: 'http', request }),
  }
}

export function answered(start: StartKind = 'warm', usage = NO_USAGE): InvocationResult {
  return { outcome: 'ok', response: { status: 201, headers: [], body: Buffer.from('answer') }, start, usage }
}

export function failed(outcome: Exclude<InvocationResult['outcome'], 'ok'>): InvocationResult {
  return { outcome, detail: 'It failed.', start: 'warm', usage: NO_USAGE }
}
