import {
  monotonicClock,
  type Cancellation,
  type HttpRequest,
  type InvocationResult,
  type InvocationUsage,
  type Revision,
} from '@carpool/core'
import type { Fleet } from '@carpool/fleet'
import type { Metering } from '@carpool/metering'

/** Methods by which a client asks for nothing but an answer, so that it does no harm to ask twice (RFC 9110, 9.2.1). */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

export interface HostRun {
  readonly revision: Revision
  readonly id: string
  readonly request: HttpRequest
  readonly cancellation: Cancellation
  readonly metering: Pick<Metering, 'placed'>
}

/**
 * Places an invocation in a host and runs it there. If the host is lost with it, and it was not its own function that brought the host down, a safe
 * method is tried once more in another, with its whole wall limit.
 * @throws CarpoolError `saturated`, `no-host` or `draining` if there is no place for it
 */
export async function runInHost(fleet: Pick<Fleet, 'place'>, run: HostRun): Promise<InvocationResult> {
  const beganMs = monotonicClock()
  const first = await runOnce(fleet, run)
  if (first.outcome !== 'host-lost' || first.isSuspect === true || run.cancellation.canceled) return first
  const isInTime = monotonicClock() - beganMs < run.revision.limits.wallMs
  if (!isInTime || !SAFE_METHODS.has(run.request.method)) return first
  try {
    const second = await runOnce(fleet, run)
    return { ...second, usage: sumOf(first.usage, second.usage) }
  } catch {
    // That there is no other place is not what happened to it.
    return first
  }
}

async function runOnce(
  fleet: Pick<Fleet, 'place'>,
  { revision, id, request, cancellation, metering }: HostRun,
): Promise<InvocationResult> {
  const slot = await fleet.place(revision, cancellation) // place
  metering.placed(slot.host)
  return slot.invoke(id, request, cancellation) // invoke
}

function sumOf(first: InvocationUsage, second: InvocationUsage): InvocationUsage {
  return {
    cpuUs: first.cpuUs + second.cpuUs,
    initUs: first.initUs + second.initUs,
    initCpuUs: first.initCpuUs + second.initCpuUs,
    memoryPeakKb: Math.max(first.memoryPeakKb, second.memoryPeakKb),
    egressBytesOut: first.egressBytesOut + second.egressBytesOut,
    egressBytesIn: first.egressBytesIn + second.egressBytesIn,
    // What a lost host did not get round to tell was begun once.
    attempts: Math.max(1, first.attempts) + second.attempts,
  }
}
