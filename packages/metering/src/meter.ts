import {
  OUTCOMES,
  NO_USAGE,
  CarpoolError,
  type Clock,
  type ErrorCode,
  type HttpRequest,
  type InvocationRecord,
  type InvocationResult,
  type Revision,
  type Trigger,
} from '@carpool/core'
import { InstanceTime } from './instance-time.ts'

/** What a function did since the server started. */
export interface FunctionCounts {
  /** Invocations that had an outcome. */
  readonly invocations: number
  /** Those whose outcome was not `ok`. */
  readonly failures: number
}

export interface MeterOptions {
  /** Resolves when the record is where it survives the end of this process. @throws CarpoolError `ledger-unavailable` */
  readonly write: (record: InvocationRecord, instanceUs: number) => Promise<void>
  /** Whether a revision has ever run. */
  readonly hasRun: (revision: string) => boolean
  /** A call was refused for which there is no record. */
  readonly onUnrecorded?: (code: ErrorCode) => void
  readonly clock: Clock
  /** The time of day, in ms of the epoch. */
  readonly now: () => number
}

export interface MeteredCall {
  readonly id: string
  readonly revision: Revision
  readonly trigger: Trigger
  readonly request: HttpRequest
  /** How long it has been in the server before, in ms. Default: 0. */
  readonly waitedMs?: number | undefined
}

/** Makes the one record of every invocation. */
export class Meter {
  readonly #options: MeterOptions
  readonly #instances: InstanceTime
  readonly #counts = new Map<string, { invocations: number; failures: number }>()
  #underWay = 0

  constructor(options: MeterOptions) {
    this.#options = options
    this.#instances = new InstanceTime(options.clock)
  }

  /** Calls that have come and have no record yet. */
  get underWay(): number {
    return this.#underWay
  }

  /** A call of a function has come. It ends with {@link Metering.finish} or {@link Metering.refuse}. */
  begin(call: MeteredCall): Metering {
    this.#underWay++
    return new Metering(this.#options, this.#instances, call, (record) => this.#count(record))
  }

  /** Counts of a function while this owner had it: a name may have come to another one. */
  countsOf(called: Pick<Revision, 'functionName' | 'owner'>): FunctionCounts {
    return { invocations: 0, failures: 0, ...this.#counts.get(countKey(called)) }
  }

  #count(record: InvocationRecord | undefined): void {
    this.#underWay--
    if (record === undefined || record.outcome === 'refused') return
    const key = countKey(record)
    const counts = this.#counts.get(key) ?? { invocations: 0, failures: 0 }
    counts.invocations++
    if (record.outcome !== 'ok') counts.failures++
    this.#counts.set(key, counts)
  }
}

function countKey({ functionName, owner }: Pick<Revision, 'functionName' | 'owner'>): string {
  return `${owner}/${functionName}`
}

/** One call on its way to its record. */
export class Metering {
  readonly #options: MeterOptions
  readonly #instances: InstanceTime
  readonly #call: MeteredCall
  readonly #onEnd: (record?: InvocationRecord) => void
  readonly #startedAtMs: number
  readonly #beganMs: number
  #host = 0
  #placedMs: number | undefined
  #isRecorded = false

  constructor(options: MeterOptions, instances: InstanceTime, call: MeteredCall, onEnd: (record?: InvocationRecord) => void) {
    this.#options = options
    this.#instances = instances
    this.#call = call
    this.#onEnd = onEnd
    const { waitedMs = 0 } = call
    this.#startedAtMs = options.now() - Math.round(waitedMs)
    this.#beganMs = options.clock() - waitedMs
  }

  /** A host takes it. Called again if that host is lost and another takes it. */
  placed(host: number): void {
    this.#host = host
    if (this.#placedMs !== undefined) return
    this.#placedMs = this.#options.clock()
    this.#instances.began(this.#call.revision.functionName)
  }

  /** It has an outcome. Resolves when the record is written. @throws CarpoolError `ledger-unavailable` */
  async finish(result: InvocationResult): Promise<InvocationRecord> {
    const { revision } = this.#call
    const isFirstEver = result.start === 'host-cold' && !this.#options.hasRun(revision.id)
    const record: InvocationRecord = {
      ...this.#common(),
      ...result.usage,
      start: isFirstEver ? 'function-cold' : result.start,
      outcome: result.outcome,
      status: result.outcome === 'ok' ? result.response.status : OUTCOMES[result.outcome].status,
      bytesOut: result.outcome === 'ok' ? result.response.body.length : 0,
    }
    await this.#write(record)
    return record
  }

  /**
   * It ends without an outcome: refused, or for a fault of ours. Resolves with what to throw once the record is written; there is none for
   * what could not have been recorded.
   */
  async refuse(cause: unknown): Promise<CarpoolError> {
    const error = CarpoolError.from(cause)
    if (this.#isRecorded) return error
    if (error.code === 'ledger-unavailable') {
      this.#isRecorded = true
      this.#onEnd()
      this.#options.onUnrecorded?.(error.code)
      return error
    }
    const { code, status } = error
    const common = this.#common()
    try {
      await this.#write({
        ...common,
        ...NO_USAGE,
        queueUs: common.wallUs,
        start: 'warm',
        outcome: 'refused',
        error: code,
        status,
        bytesOut: 0,
      })
      return error
    } catch (unwritten) {
      return CarpoolError.from(unwritten)
    }
  }

  #common(): Omit<InvocationRecord, keyof typeof NO_USAGE | 'start' | 'outcome' | 'status' | 'bytesOut'> {
    const { id, revision, trigger, request } = this.#call
    const endedMs = this.#options.clock()
    return {
      id,
      functionName: revision.functionName,
      revision: revision.id,
      owner: revision.owner,
      trigger,
      startedAtMs: this.#startedAtMs,
      host: this.#host,
      queueUs: microseconds((this.#placedMs ?? endedMs) - this.#beganMs),
      wallUs: microseconds(endedMs - this.#beganMs),
      memoryMb: revision.limits.memoryMb,
      bytesIn: request.body.length,
    }
  }

  /** Once; a second record of the same call is dropped. */
  async #write(record: InvocationRecord): Promise<void> {
    if (this.#isRecorded) return
    this.#isRecorded = true
    this.#onEnd(record)
    const instanceUs = this.#placedMs === undefined ? 0 : this.#instances.ended(record.functionName)
    await this.#options.write(record, instanceUs)
  }
}

function microseconds(ms: number): number {
  return Math.max(0, Math.round(ms * 1000))
}
