import type { HostInfo } from '@carpool/core'
import type { Test } from 'tap'
import type { Verdict } from './isolation-case.ts'
import { resetPeak, sampleProcess, type ProcessSample } from './process-sample.ts'
import type { Rig } from './rig.ts'
import { within } from './within.ts'

/**
 * Threads and descriptors that may come and stay for reasons of their own: threads of the pool start when they are first
 * needed.
 */
const SLACK = 8
/** What is not back after as long as this will not come back, in ms. */
const PATIENCE_MS = 10_000

export interface HostBefore {
  readonly host: HostInfo
  readonly sample: ProcessSample | undefined
  readonly isPeakNew: boolean
}

export async function lookAtHost(rig: Rig): Promise<HostBefore> {
  const host = await rig.host()
  const sample = sampleProcess(host.pid)
  return { host, sample, isPeakNew: resetPeak(host.pid) }
}

/** How much more memory than before the host had at its peak since then, in MiB; undefined if it is gone. */
export function growthMb({ host, sample, isPeakNew }: HostBefore): number | undefined {
  const after = sampleProcess(host.pid)
  return sample === undefined || after === undefined || !isPeakNew ? undefined : after.peakResidentMb - sample.residentMb
}

/** A host tells ten times a second how many isolates are entered, in ms. */
const TOLD_MS = 500

/**
 * Whether the host from before is not the one that serves any more. Waits until that is known: no thread is in an isolate for a
 * while, or the host is given up and has gone.
 */
export async function isGivenUp(rig: Rig, { host: { pid } }: HostBefore): Promise<boolean> {
  let calmSinceMs: number | undefined
  await within(PATIENCE_MS, async () => {
    const { hosts } = await rig.server.info()
    const host = hosts.find((one) => one.pid === pid)
    if (host === undefined) return hosts.every(({ state }) => state !== 'poisoned')
    if (host.state === 'poisoned' || host.enteredIsolates > 0) calmSinceMs = undefined
    else calmSinceMs ??= performance.now()
    return calmSinceMs !== undefined && performance.now() - calmSinceMs >= TOLD_MS
  })
  return (await rig.host()).pid !== pid
}

/**
 * After an attack: the host is the one from before, or for `P` another. What the attack took of it comes back: calls, entered
 * isolates, threads, descriptors. Waits for that for a while.
 */
export async function checkHost(t: Test, rig: Rig, verdict: Verdict, before: HostBefore): Promise<void> {
  const pid = before.host.pid
  if (verdict === 'P') {
    const isReplaced = await within(PATIENCE_MS, async () => (await rig.host()).pid !== pid)
    t.ok(isReplaced, 'another host has taken its place')
    return
  }
  const after = await rig.host()
  t.equal(after.pid, pid, 'the host lives')
  const { hosts } = await rig.server.info()
  const others = hosts.filter(({ pid: other, state }) => other !== pid && state !== 'standby' && state !== 'gone')
  t.strictSame(
    others.map(({ state, quarantineOf }) => [state, quarantineOf]),
    [],
    'and there is no other',
  )
  if (after.pid !== pid || before.sample === undefined) return
  const { threads, descriptors } = before.sample
  let last = ''
  const isBack = await within(PATIENCE_MS, async () => {
    const { inFlight, running } = await rig.host()
    const sample = sampleProcess(pid)
    last = `${inFlight} in flight, ${running} running, ${sample?.threads} threads after ${threads}, ${sample?.descriptors} descriptors after ${descriptors}`
    // Calls of the neighbour come and go.
    if (inFlight > 3 || running > 3 || sample === undefined) return false
    return sample.threads <= threads + SLACK && sample.descriptors <= descriptors + SLACK
  })
  t.ok(isBack, `the host has what it had before: ${last}`)
}
