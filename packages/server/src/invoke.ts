import type { Admission } from '@carpool/admission'
import { CarpoolError, monotonicClock, type Call, type InvocationResult, type InvocationUsage } from '@carpool/core'
import type { CallListener, Fleet } from '@carpool/fleet'
import type { Meter } from '@carpool/ledger'
import type { Registry } from '@carpool/registry'
import type { Hops } from './hops.ts'
import type { FunctionLogger } from './host-reports/function-logger.ts'

interface CallPipelineParts {
  readonly registry: Pick<Registry, 'route' | 'checkEnabled'>
  readonly hops: Hops
  readonly admission: Admission
  readonly meter: Pick<Meter, 'came' | 'placed' | 'unplaced' | 'finish' | 'refuse'>
  readonly functionLogger: Pick<FunctionLogger, 'failed'>
}

/** Methods by which a client asks for nothing but an answer, so that it does no harm to ask twice (RFC 9110, 9.2.1). */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/**
 * The way of a call from its request to its answer, with the numbers of the table in ARCHITECTURE.md. Where nothing has to be
 * waited for, 2 to 5 are one run from the request's event to the frame for the host, and 6 to 8 one from the host's frame to the
 * client's socket. Each step may refuse the call with an error whose code names the step; once a host has it, it has an outcome.
 */
export class CallPipeline implements CallListener {
  readonly #parts: CallPipelineParts
  #fleet!: Pick<Fleet, 'place'>

  constructor(parts: CallPipelineParts) {
    this.#parts = parts
  }

  /** Called once, before the first call: the fleet is made with this as its listener. */
  useFleet(fleet: Pick<Fleet, 'place'>): void {
    this.#fleet = fleet
  }

  /** A call has come (1, by the gateway or the control plane). */
  invoke(call: Call): void {
    const { registry, hops, admission, meter } = this.#parts
    try {
      call.revision = registry.route(call.functionName) // 2
    } catch (cause) {
      return call.end(CarpoolError.from(cause))
    }
    meter.came(call)
    try {
      hops.check(call)
      hops.follow(call)
      registry.checkEnabled(call.functionName)
      admission.admit(call) // 3
      this.#fleet.place(call) // 4 and 5: now, or when a host has room
    } catch (cause) {
      this.refused(call, CarpoolError.from(cause))
    }
  }

  /** A host takes the call (5). */
  placed(call: Call): void {
    this.#parts.meter.placed(call)
  }

  /** The host never began it. */
  unplaced(call: Call): void {
    // What it has used and waited since its first host took it stays.
    if (call.firstResult !== undefined) return
    call.host = 0
    this.#parts.meter.unplaced(call)
  }

  /** The host has said how it ended, or is gone (6). */
  answered(call: Call, result: InvocationResult): void {
    if (call.firstResult !== undefined) return this.#finish(call, bothTries(call.firstResult, result))
    if (!mayBeginAgain(call, result)) return this.#finish(call, result)
    call.firstResult = result
    this.#fleet.place(call)
  }

  /** No host takes it. */
  refused(call: Call, error: CarpoolError): void {
    // That there is no second place is not what happened to it.
    if (call.firstResult !== undefined) return this.#finish(call, call.firstResult)
    this.#release(call)
    this.#parts.meter.refuse(call, error, (unwritten) => call.end(unwritten ?? error)) // 7, 8
  }

  #finish(call: Call, result: InvocationResult): void {
    const { meter, functionLogger } = this.#parts
    call.result = result
    if (result.outcome !== 'ok' && call.revision !== undefined) functionLogger.failed(call.revision, call.id, result)
    this.#release(call)
    meter.finish(call, result, (unwritten) => call.end(unwritten)) // 7, 8
  }

  #release(call: Call): void {
    const { admission, hops } = this.#parts
    admission.release(call)
    if (call.hops > 0) hops.ended(call.id)
  }
}

/**
 * Whether it is tried once more, with its whole wall limit: if it never got into an isolate, as when its function has harmed that
 * host; or in another host if its method is safe and the host is lost with it, unless its own function brought the host down.
 */
function mayBeginAgain(call: Call, result: InvocationResult): boolean {
  if (result.outcome !== 'host-lost' && !neverBegan(result)) return false
  // What has left of its body, or has come of its answer, is gone.
  if (call.upload !== undefined || call.begun !== undefined) return false
  if (call.isCanceled || monotonicClock() - call.placedMs >= (call.revision?.limits.wallMs ?? 0)) return false
  return result.outcome === 'host-lost' ? result.isSuspect !== true && SAFE_METHODS.has(call.head.method) : true
}

/** The isolate that it was to go into was lost before, and it did not get another. */
function neverBegan({ outcome, usage }: InvocationResult): boolean {
  return outcome === 'isolate-lost' && usage.attempts === 0
}

/** The second result, with what both have used. */
function bothTries(first: InvocationResult, second: InvocationResult): InvocationResult {
  const usage: InvocationUsage = {
    cpuUs: first.usage.cpuUs + second.usage.cpuUs,
    initUs: first.usage.initUs + second.usage.initUs,
    initCpuUs: first.usage.initCpuUs + second.usage.initCpuUs,
    memoryPeakKb: Math.max(first.usage.memoryPeakKb, second.usage.memoryPeakKb),
    egressBytesOut: first.usage.egressBytesOut + second.usage.egressBytesOut,
    egressBytesIn: first.usage.egressBytesIn + second.usage.egressBytesIn,
    sockets: first.usage.sockets + second.usage.sockets,
    socketUs: first.usage.socketUs + second.usage.socketUs,
    // A lost host may not have reported it, but it was begun once.
    attempts: (neverBegan(first) ? 0 : Math.max(1, first.usage.attempts)) + second.usage.attempts,
  }
  return { ...second, usage }
}
