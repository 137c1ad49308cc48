import { setTimeout as delay } from 'node:timers/promises'
import type { CarpoolServer } from '../lib/carpool-server.ts'
import { parseHostCpu, type HostCpu } from '../lib/host-cpu.ts'
import { readProcesses } from '../lib/process-table.ts'
import { readThreadTimes, type ThreadTimes } from '../lib/thread-table.ts'

/** CPU time of the host processes of a server, the standby included, as the server has it and as the system has it. */
export interface MeterReading {
  /** Of the one that takes calls. */
  readonly hostPid: number
  readonly cpu: HostCpu
  /** User and system time of all of them, in seconds. */
  readonly processSeconds: number
  readonly threads: ThreadTimes | undefined
  /** Sum of all records, with starts and work in the background, in seconds. */
  readonly ledgerSeconds: number
}

/** Longer than a host waits before it tells what is new. */
const LOOK_MS = 400
/** What of two looks is the same if nothing happens: a host tells nothing new below 20 ms. */
const LOOKS = 3

/**
 * Reads when nothing is under way any more: the metrics have not changed over several looks. What the host has not told then is
 * under 20 ms of CPU.
 * @throws Error if there is not exactly one host that takes calls
 */
export async function readMeters(server: CarpoolServer): Promise<MeterReading> {
  let cpu = parseHostCpu(await server.metrics())
  for (let same = 1; same < LOOKS; ) {
    await delay(LOOK_MS)
    const next = parseHostCpu(await server.metrics())
    same = JSON.stringify(next) === JSON.stringify(cpu) ? same + 1 : 1
    cpu = next
  }
  const hosts = await server.hosts()
  const [serving, ...others] = hosts.filter(({ state }) => state !== 'standby')
  if (serving === undefined || others.length > 0) throw new Error(`${hosts.length} hosts take calls or start, not one.`)
  const pids = new Set(hosts.map(({ pid }) => pid))
  const rows = readProcesses().filter(({ pid }) => pids.has(pid))
  if (rows.length < hosts.length) throw new Error('A host process is gone.')
  const processSeconds = rows.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  const usage = await server.usage('owner')
  const ledgerUs = usage.reduce((sum, { cpuUs, initCpuUs, backgroundCpuUs }) => sum + cpuUs + initCpuUs + backgroundCpuUs, 0)
  return { hostPid: serving.pid, cpu, processSeconds, threads: sumOfThreads([...pids]), ledgerSeconds: ledgerUs / 1e6 }
}

/** Undefined where the system does not tell of one of them. */
function sumOfThreads(pids: readonly number[]): ThreadTimes | undefined {
  const all = pids.map(readThreadTimes).filter((times) => times !== undefined)
  if (all.length < pids.length) return undefined
  return all.reduce((sum, { main, v8Helpers, others }) => ({
    main: sum.main + main,
    v8Helpers: sum.v8Helpers + v8Helpers,
    others: sum.others + others,
  }))
}
