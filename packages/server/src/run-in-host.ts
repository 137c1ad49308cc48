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
 * Places an invocation in a host and runs it there. It is tried once more, with its whole wall limit, if it never got into an isolate there, as when
 * its function has harmed that host; or in another if its method is safe and the host is lost with it, unless its own function brought the host down.
 * @throws CarpoolError `saturated`, `no-host` or `draining` if there is no place for it
 */
export async function runInHost(fleet: Pick<Fleet, 'place'>, run: HostRun): Promise<InvocationResult> {
  const beganMs = monotonicClock()
  const first = await runOnce(fleet, run)
  const isInTime = monotonicClock() - beganMs < run.revision.limits.wallMs
  if (!isInTime || run.cancellation.canceled || !mayBeginAgain(first, run.request.method)) return first
  try {
    const second = await runOnce(fleet, run)
    return { ...second, usage: sumOf(first, second) }
  } catch {
    // That there is no other place is not what happened to it.
    return first
  }
}

function mayBeginAgain(first: InvocationResult, method: string): boolean {
  if (first.outcome === 'host-lost') return first.isSuspect !== true && SAFE_METHODS.has(method)
  return neverBegan(first)
}

/** The isolate that it was to go into was lost before, and it did not get another. */
function neverBegan({ outcome, usage }: InvocationResult): boolean {
  return outcome === 'isolate-lost' && usage.attempts === 0
}

async function runOnce(
  fleet: Pick<Fleet, 'place'>,
  { revision, id, request, cancellation, metering }: HostRun,
): Promise<InvocationResult> {
  const slot = await fleet.place(revision, cancellation) // place
  metering.placed(slot.host)
  return slot.invoke(id, request, cancellation) // invoke
}

function sumOf(firstResult: InvocationResult, { usage: second }: InvocationResult): InvocationUsage {
  const { usage: first } = firstResult
  return {
    cpuUs: first.cpuUs + second.cpuUs,
    initUs: first.initUs + second.initUs,
    initCpuUs: first.initCpuUs + second.initCpuUs,
    memoryPeakKb: Math.max(first.memoryPeakKb, second.memoryPeakKb),
    egressBytesOut: first.egressBytesOut + second.egressBytesOut,
    egressBytesIn: first.egressBytesIn + second.egressBytesIn,
    // What a lost host did not get round to tell was begun once.
    attempts: (neverBegan(firstResult) ? 0 : Math.max(1, first.attempts)) + second.attempts,
  }
}
