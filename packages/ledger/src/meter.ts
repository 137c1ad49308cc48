import {
  INSTANCE_CONCURRENCY,
  NO_USAGE,
  OUTCOMES,
  type Call,
  type CarpoolError,
  type Clock,
  type InvocationRecord,
  type InvocationResult,
  type InvocationUsage,
  type Revision,
} from '@carpool/core'

/** What a function did since the server started. */
export interface FunctionCounts {
  /** Invocations that had an outcome. */
  readonly invocations: number
  /** Those whose outcome was not `ok`. */
  readonly failures: number
}

/** Called once the record survives the end of this process, or with the reason why not: `ledger-unavailable`. */
type Written = (error?: CarpoolError) => void

export interface MeterOptions {
  readonly write: (record: InvocationRecord, instanceUs: number, written: Written) => void
  /** Whether a revision has ever run. */
  readonly hasRun: (revision: string) => boolean
  /** Has the record of a call that was refused because records cannot be written now be written later. */
  readonly hold: (record: InvocationRecord) => void
  readonly clock: Clock
}

/** Makes the one record of every call of a function. */
export class Meter {
  readonly #options: MeterOptions
  readonly #instances: InstanceTime
  /** By owner and function: a name may come to another owner. */
  readonly #counts = new Map<string, Map<string, { invocations: number; failures: number }>>()
  #underWay = 0

  constructor(options: MeterOptions) {
    this.#options = options
    this.#instances = new InstanceTime(options.clock)
  }

  /** Calls that have come and have no record yet. */
  get underWay(): number {
    return this.#underWay
  }

  /** A call of a function has come. It ends with {@link finish} or {@link refuse}. */
  came(call: Call): void {
    call.isUnderWay = true
    this.#underWay++
  }

  /** A host takes it. Called again if that host is lost and another takes it. */
  placed(call: Call): void {
    if (call.placedMs < 0) call.placedMs = this.#instances.placed(call.functionName)
  }

  /** The host that took it never began it: it waits again, and has waited all the time. */
  unplaced(call: Call): void {
    if (call.placedMs < 0) return
    this.#instances.unplaced(call.functionName, call.placedMs)
    call.placedMs = -1
  }

  /** It has an outcome. @param written called when the record is written; the call has it then */
  finish(call: Call, result: InvocationResult, written: Written): void {
    if (!call.isUnderWay) return written()
    const { usage } = result
    const isFirstEver = result.start === 'host-cold' && !this.#options.hasRun(call.revision?.id ?? '')
    const response = result.outcome === 'ok' ? result.response : undefined
    // Of an answer that streamed, the caller has the head's status, however the call ended.
    const streamed = call.begun?.status === undefined ? undefined : call.begun
    const nowMs = this.#options.clock()
    this.#write(
      call,
      recordOf(call, nowMs, {
        usage,
        start: isFirstEver ? 'function-cold' : result.start,
        outcome: result.outcome,
        status: streamed?.status ?? (result.outcome === 'ok' ? result.response.status : OUTCOMES[result.outcome].status),
        bytesOut: streamed?.bytes ?? response?.body.length ?? 0,
        openUs: streamed === undefined ? 0 : microseconds(nowMs - streamed.atMs),
      }),
      written,
    )
  }

  /**
   * It ends without an outcome: refused, or a fault of Carpool.
   * @param done called when the record is written, or at once if that is why it is refused
   */
  refuse(call: Call, { code, status }: CarpoolError, done: Written): void {
    if (!call.isUnderWay) return done()
    const end = { usage: NO_USAGE, start: 'warm', outcome: 'refused', status, bytesOut: 0, openUs: 0 } as const
    const waited = recordOf(call, this.#options.clock(), end)
    // All of its time was waiting, also if a host was about to take it.
    const record = { ...waited, queueUs: waited.wallUs, error: code }
    if (code !== 'ledger-unavailable') return this.#write(call, record, done)
    this.#ended(call)
    this.#options.hold(record)
    done()
  }

  /** Counts of a function while this owner had it. */
  countsOf({ functionName, owner }: Pick<Revision, 'functionName' | 'owner'>): FunctionCounts {
    return { invocations: 0, failures: 0, ...this.#counts.get(owner)?.get(functionName) }
  }

  #write(call: Call, record: InvocationRecord, written: Written): void {
    call.record = record
    this.#ended(call)
    if (record.outcome !== 'refused') this.#count(record)
    const instanceUs = call.placedMs < 0 ? 0 : this.#instances.ended(call.functionName)
    this.#options.write(record, instanceUs, written)
  }

  #ended(call: Call): void {
    call.isUnderWay = false
    this.#underWay--
  }

  #count({ owner, functionName, outcome }: InvocationRecord): void {
    let ofOwner = this.#counts.get(owner)
    if (ofOwner === undefined) this.#counts.set(owner, (ofOwner = new Map()))
    let counts = ofOwner.get(functionName)
    if (counts === undefined) ofOwner.set(functionName, (counts = { invocations: 0, failures: 0 }))
    counts.invocations++
    if (outcome !== 'ok') counts.failures++
  }
}

type End = Pick<InvocationRecord, 'start' | 'outcome' | 'status' | 'bytesOut' | 'openUs'> & { readonly usage: InvocationUsage }

function recordOf(call: Call, endedMs: number, { usage, start, outcome, status, bytesOut, openUs }: End): InvocationRecord {
  const { revision, placedMs, cameMs } = call
  return {
    id: call.id,
    functionName: call.functionName,
    revision: revision?.id ?? '',
    owner: revision?.owner ?? '',
    trigger: call.trigger,
    startedAtMs: call.startedAtMs,
    host: call.host,
    queueUs: microseconds((placedMs < 0 ? endedMs : placedMs) - cameMs),
    wallUs: microseconds(endedMs - cameMs),
    memoryMb: revision?.limits.memoryMb ?? 0,
    bytesIn: call.begun?.receivedBytes ?? call.upload?.takenBytes ?? call.body.length,
    cpuUs: usage.cpuUs,
    initUs: usage.initUs,
    initCpuUs: usage.initCpuUs,
    memoryPeakKb: usage.memoryPeakKb,
    egressBytesOut: usage.egressBytesOut,
    egressBytesIn: usage.egressBytesIn,
    openUs,
    sockets: usage.sockets,
    socketUs: usage.socketUs,
    attempts: usage.attempts,
    start,
    outcome,
    status,
    bytesOut,
  }
}

function microseconds(ms: number): number {
  return Math.max(0, Math.round(ms * 1000))
}

interface InUse {
  /**
   * For each invocation in flight a time: since the one at index n, more than n have been in flight. What is later than
   * {@link takenMs} is when one was placed, for none has ended since then.
   */
  readonly risenMs: number[]
  /** Up to when the time was taken. */
  takenMs: number
  /** Less than a µs, not yet taken. */
  restMs: number
}

/**
 * How long instances of a function would have been in use on a platform that puts up to {@link INSTANCE_CONCURRENCY} invocations
 * in one: the integral of ceil(in flight / concurrency) over time. Each invocation that ends takes what has come up since the one
 * before into its record.
 */
export class InstanceTime {
  readonly #clock: Clock
  readonly #inUse = new Map<string, InUse>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A host takes an invocation. @returns when that was */
  placed(functionName: string): number {
    const nowMs = this.#clock()
    const inUse = this.#inUse.get(functionName)
    if (inUse === undefined) this.#inUse.set(functionName, { risenMs: [nowMs], takenMs: nowMs, restMs: 0 })
    else inUse.risenMs.push(nowMs)
    return nowMs
  }

  /** One that was placed then never began. Its time is in no record, but for what another has taken already. */
  unplaced(functionName: string, atMs: number): void {
    const inUse = this.#inUse.get(functionName)
    if (inUse === undefined) return
    const { risenMs } = inUse
    // If it is from before the last end, so is one that stands here, and it is the same whose is left out.
    const index = risenMs.findLastIndex((ms) => ms <= atMs)
    risenMs.splice(Math.max(0, index), 1)
    if (risenMs.length === 0) this.#inUse.delete(functionName)
  }

  /** An invocation has ended. @returns instance time of the function that no record has yet, in µs */
  ended(functionName: string): number {
    const inUse = this.#inUse.get(functionName)
    if (inUse === undefined) return 0
    const nowMs = this.#clock()
    const { risenMs, takenMs } = inUse
    let instanceMs = inUse.restMs
    for (let index = 0; index < risenMs.length; index += INSTANCE_CONCURRENCY)
      instanceMs += Math.max(0, nowMs - Math.max(takenMs, risenMs[index] ?? nowMs))
    risenMs.pop()
    if (risenMs.length === 0) this.#inUse.delete(functionName)
    // Rounding may leave a little less than 0.
    const us = Math.max(0, Math.floor(instanceMs * 1000))
    inUse.restMs = instanceMs - us / 1000
    inUse.takenMs = nowMs
    return us
  }
}
