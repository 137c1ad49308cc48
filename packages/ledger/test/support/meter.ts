import {
  AwaitedCall,
  CarpoolError,
  NO_USAGE,
  resolveLimits,
  type InvocationRecord,
  type InvocationResult,
  type Revision,
  type StartKind,
} from '@carpool/core'
import { Meter } from '../../src/meter.ts'

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

/** One call on its way to its record. */
export interface Metering {
  placed(host: number): void
  unplaced(): void
  /** The head of an answer that streams has come, and so many bytes of it. */
  began(status: number, bytes: number): void
  /** Resolves with the record when it is written, rejects if it cannot be. */
  finish(result: InvocationResult): Promise<InvocationRecord>
  /** Resolves with what the caller is told. */
  refuse(cause: unknown): Promise<CarpoolError>
}

export interface Rig {
  readonly meter: Meter
  readonly writes: Write[]
  /** Records of calls that were refused because they could not be written. */
  readonly held: InvocationRecord[]
  /** The clocks that the meter reads, in ms; both to be set. */
  readonly clocks: { monotonicMs: number; epochMs: number }
  /** Every write fails with it, from now on. */
  failWrites(cause: Error): void
  begin(id: string): Metering
}

/** A meter with a ledger in memory, under clocks that stand still until they are set. */
export function meterRig(hasRun: (revision: string) => boolean = () => true): Rig {
  const writes: Write[] = []
  const held: InvocationRecord[] = []
  const clocks = { monotonicMs: 1_000, epochMs: 1_800_000_000_000 }
  let failure: Error | undefined
  const meter = new Meter({
    write: (record, instanceUs, written) => {
      writes.push({ record, instanceUs })
      written(failure === undefined ? undefined : CarpoolError.from(failure))
    },
    hold: (record) => held.push(record),
    hasRun,
    clock: () => clocks.monotonicMs,
  })
  const begin = (id: string): Metering => {
    const head = { method: 'POST', url: 'http://localhost/sample', headers: [], clientIp: '::1' }
    const { functionName } = REVISION
    const times = { startedAtMs: clocks.epochMs, cameMs: clocks.monotonicMs }
    const call = new AwaitedCall({ id, functionName, trigger: 'http', head, hops: 0, ...times })
    call.body = Buffer.from('four')
    call.revision = REVISION
    meter.came(call)
    return {
      placed: (host) => {
        call.host = host
        meter.placed(call)
      },
      unplaced: () => meter.unplaced(call),
      began: (status, bytes) => {
        call.begun = { atMs: clocks.monotonicMs, status, bytes }
      },
      finish: (result) =>
        new Promise((resolve, reject) => {
          meter.finish(call, result, (error) => {
            if (error !== undefined) reject(error)
            else if (call.record !== undefined) resolve(call.record)
            else reject(new Error('There is no record.'))
          })
        }),
      refuse: (cause) => {
        const error = CarpoolError.from(cause)
        return new Promise((resolve) => meter.refuse(call, error, (unwritten) => resolve(unwritten ?? error)))
      },
    }
  }
  return { meter, writes, held, clocks, failWrites: (cause) => (failure = cause), begin }
}

export function answered(start: StartKind = 'warm', usage = NO_USAGE): InvocationResult {
  return { outcome: 'ok', response: { status: 201, headers: [], body: Buffer.from('answer') }, start, usage }
}

export function failed(outcome: Exclude<InvocationResult['outcome'], 'ok'>): InvocationResult {
  return { outcome, detail: 'It failed.', start: 'warm', usage: NO_USAGE }
}
