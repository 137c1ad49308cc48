import type { InvocationRecord } from '@carpool/core'
import type { Caller } from '../lib/caller.ts'
import type { CarpoolServer } from '../lib/carpool-server.ts'
import { functionsCpu, hostCpuBetween } from '../lib/host-cpu.ts'
import { progress } from '../lib/report.ts'
import { median } from '../lib/statistics.ts'
import { readMeters } from './meter-reading.ts'
import { callAlone, iterationsPerMs, recorded, warmUp, WORK_FILE, workUrl, type WorkShape } from './work.ts'

const AT_ONCE = 50
const PARTS = 4
const WAIT_MS = [5, 25] as const
/** Before the load, and as many after it, so that a machine that becomes slower or faster does not count. */
const REFERENCE_CALLS = 11

/** So many calls that what the host has not told yet, up to 20 ms of CPU, is less than a hundredth of what they use. */
const LOADS: ReadonlyArray<{ readonly cpuMs: number; readonly calls: number }> = [
  { cpuMs: 1, calls: 1000 },
  { cpuMs: 5, calls: 600 },
  { cpuMs: 20, calls: 200 },
  { cpuMs: 100, calls: 100 },
]

/** Relative, or absolute if that is more. */
const TOLERANCE = 0.1
const TOLERANCE_US = 1000

/** One function under load, 50 calls at a time. */
export interface AccuracyResult {
  readonly cpuMs: number
  readonly calls: number
  /** Of calls made alone, in µs of CPU. */
  readonly referenceUs: readonly number[]
  /** Of the calls under load, in µs of CPU. */
  readonly recordedUs: readonly number[]
  /** Calls that are further from the median of the reference than allowed. */
  readonly outside: number
  /** Sum of the records, with those of starts, in seconds. */
  readonly recordsSeconds: number
  /** What the function used when nobody waited, by the metrics, in seconds. */
  readonly backgroundSeconds: number
  /** CPU time of isolates meanwhile, without making them and looking at their memory, in seconds. */
  readonly isolatesSeconds: number
  /**
   * What the threads of the isolates used meanwhile for the same, by the system, in seconds; undefined where it does not tell.
   */
  readonly threadsSeconds: number | undefined
}

export async function measureAccuracy(server: CarpoolServer, caller: Caller): Promise<AccuracyResult[]> {
  const { url } = await server.deploy(WORK_FILE, 'calibration')
  await warmUp(caller, url)
  const perMs = await iterationsPerMs(server, caller, url)
  progress(`${Math.round(perMs)} iterations take 1 ms of CPU`)
  const results: AccuracyResult[] = []
  for (const load of LOADS) {
    progress(`accuracy: ${load.calls} calls of ${load.cpuMs} ms, ${AT_ONCE} at a time`)
    const shape = { iterations: Math.round(perMs * load.cpuMs), parts: PARTS, waitMs: WAIT_MS }
    results.push(await measureLoad(server, caller, load, shape))
  }
  return results
}

async function measureLoad(
  server: CarpoolServer,
  caller: Caller,
  { cpuMs, calls }: (typeof LOADS)[number],
  shape: WorkShape,
): Promise<AccuracyResult> {
  const name = `work-${cpuMs}ms`
  const { url } = await server.deploy(WORK_FILE, name)
  const target = workUrl(url, shape)
  await warmUp(caller, url)
  const first = await callAlone(server, caller, target, REFERENCE_CALLS)
  const before = await readMeters(server)
  const records = await recorded(server, name, calls, () => caller.callInTurns(target, calls, AT_ONCE))
  const after = await readMeters(server)
  const last = await callAlone(server, caller, target, REFERENCE_CALLS)
  const cpu = hostCpuBetween(before.cpu, after.cpu)
  const referenceUs = cpuOf([...first, ...last])
  const recordedUs = cpuOf(records)
  return {
    cpuMs,
    calls,
    referenceUs,
    recordedUs,
    outside: countOutside(recordedUs, median(referenceUs)),
    recordsSeconds: records.reduce((sum, { cpuUs, initCpuUs }) => sum + cpuUs + initCpuUs, 0) / 1e6,
    backgroundSeconds: cpu.background,
    isolatesSeconds: functionsCpu(cpu),
    threadsSeconds:
      before.threads && after.threads && after.threads.others - before.threads.others - cpu.blanks - cpu['memory-watch'],
  }
}

/** How many are neither within a tenth nor within 1 ms of what was expected. */
export function countOutside(recordedUs: readonly number[], expectedUs: number): number {
  const most = Math.max(TOLERANCE_US, expectedUs * TOLERANCE)
  return recordedUs.filter((us) => Math.abs(us - expectedUs) > most).length
}

const SLEEPERS = 100
const SLEEP_MS = 2000

/** CPU time of calls that do nothing but wait, in µs. */
export async function measureSleepers(server: CarpoolServer, caller: Caller): Promise<number[]> {
  progress(`accuracy: ${SLEEPERS} calls that sleep for ${SLEEP_MS / 1000} s, all at once`)
  const { url } = await server.deploy(WORK_FILE, 'sleeper')
  await warmUp(caller, url)
  const target = workUrl(url, { iterations: 0, parts: 2, waitMs: [SLEEP_MS, SLEEP_MS] })
  return cpuOf(await recorded(server, 'sleeper', SLEEPERS, () => caller.callAtOnce(target, SLEEPERS)))
}

function cpuOf(records: readonly InvocationRecord[]): number[] {
  return records.map(({ cpuUs }) => cpuUs)
}
