import { Caller } from '../lib/caller.ts'
import { startCarpool, type CarpoolOptions } from '../lib/carpool-server.ts'
import { hostCpuBetween, isolatesCpu, type HostCpu } from '../lib/host-cpu.ts'
import { progress } from '../lib/report.ts'
import type { ThreadTimes } from '../lib/thread-table.ts'
import { readMeters } from './meter-reading.ts'
import { ONE_HOST } from './one-host.ts'
import { deployMixed, MAX_ISOLATES, runMixedLoad, type MixedLoadResult } from './mixed-load.ts'

/** All in seconds of CPU, for the host processes over the load: one takes calls, one may be in reserve. */
export interface ConservationResult {
  readonly load: MixedLoadResult
  /** User and system time, by the system. */
  readonly processSeconds: number
  /** Invocations, starts and background, as the ledger has them. */
  readonly ledgerSeconds: number
  /** By the server's metrics. */
  readonly cpu: HostCpu
  /** By the system; undefined where it does not tell. */
  readonly threads: ThreadTimes | undefined
}

export async function measureConservation(dataDir: string, durationMs: number): Promise<ConservationResult> {
  const options: CarpoolOptions = { dataDir, flags: ['--max-isolates', String(MAX_ISOLATES), ...ONE_HOST] }
  {
    progress('conservation: deploying')
    await using server = await startCarpool(options)
    await deployMixed(server)
  }
  // A server that was started again has no isolates yet, so that the first call of each function starts one.
  await using server = await startCarpool(options)
  using caller = new Caller()
  const before = await readMeters(server)
  progress(`conservation: mixed load for ${durationMs / 1000} s`)
  const load = await runMixedLoad(server, caller, durationMs)
  const after = await readMeters(server)
  if (before.hostPid !== after.hostPid) throw new Error('The host process was replaced under load.')
  return {
    load,
    processSeconds: after.processSeconds - before.processSeconds,
    ledgerSeconds: after.ledgerSeconds - before.ledgerSeconds,
    cpu: hostCpuBetween(before.cpu, after.cpu),
    threads: before.threads && after.threads && threadsBetween(before.threads, after.threads),
  }
}

type Accounted = Pick<ConservationResult, 'ledgerSeconds' | 'cpu' | 'threads' | 'processSeconds'>

/**
 * The part of the process's CPU time that is in the ledger or is an overhead with a name. The server has `threads` as what is
 * left of the process, so that too much in one place makes it too little in the other and this cannot fail for it.
 */
export function processAccounted({ ledgerSeconds, cpu, processSeconds }: Accounted): number {
  return (ledgerSeconds + cpu.blanks + cpu['memory-watch'] + cpu.loop + cpu.threads) / processSeconds
}

/** The same with the helper threads as the system has them; undefined where it does not tell. */
export function processAccountedBySystem({ ledgerSeconds, cpu, threads, processSeconds }: Accounted): number | undefined {
  if (threads === undefined) return undefined
  return (ledgerSeconds + cpu.blanks + cpu['memory-watch'] + cpu.loop + threads.v8Helpers) / processSeconds
}

/** Of what the isolates used, by their clocks, the part that is in the ledger or is a named overhead. */
export function isolatesAccounted({ ledgerSeconds, cpu }: Accounted): number {
  return (ledgerSeconds + cpu.blanks + cpu['memory-watch']) / isolatesCpu(cpu)
}

function threadsBetween(before: ThreadTimes, after: ThreadTimes): ThreadTimes {
  return {
    main: after.main - before.main,
    v8Helpers: after.v8Helpers - before.v8Helpers,
    others: after.others - before.others,
  }
}
