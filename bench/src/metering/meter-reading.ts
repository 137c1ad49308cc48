import { setTimeout as delay } from 'node:timers/promises'
import type { CarpoolServer } from '../lib/carpool-server.ts'
import { parseHostCpu, type HostCpu } from '../lib/host-cpu.ts'
import { readProcesses } from '../lib/process-table.ts'
import { readThreadTimes, type ThreadTimes } from '../lib/thread-table.ts'

/** CPU time of the one host process of a server, as the server has it and as the system has it. */
export interface MeterReading {
  readonly hostPid: number
  readonly cpu: HostCpu
  /** User and system time of the host process, in seconds. */
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
 * Reads when nothing is under way any more: the metrics have not changed over several looks. What the host has not told then is under 20 ms
 * of CPU.
 * @throws Error if there is not exactly one host
 */
export async function readMeters(server: CarpoolServer): Promise<MeterReading> {
  let cpu = parseHostCpu(await server.metrics())
  for (let same = 1; same < LOOKS; ) {
    await delay(LOOK_MS)
    const next = parseHostCpu(await server.metrics())
    same = JSON.stringify(next) === JSON.stringify(cpu) ? same + 1 : 1
    cpu = next
  }
  const [host, ...others] = await server.hosts()
  if (host === undefined || others.length > 0) throw new Error(`There are ${others.length + (host ? 1 : 0)} hosts, not one.`)
  const { pid } = host
  const row = readProcesses().find((process) => process.pid === pid)
  if (row === undefined) throw new Error('The host process is gone.')
  const usage = await server.usage('owner')
  const ledgerUs = usage.reduce((sum, { cpuUs, initCpuUs, backgroundCpuUs }) => sum + cpuUs + initCpuUs + backgroundCpuUs, 0)
  return { hostPid: pid, cpu, processSeconds: row.cpuSeconds, threads: readThreadTimes(pid), ledgerSeconds: ledgerUs / 1e6 }
}
