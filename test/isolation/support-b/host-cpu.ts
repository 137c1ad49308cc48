import { readFileSync } from 'node:fs'
import type { TestServer } from '../../support/server.ts'

/** CPU time of all host processes by what it was for, in seconds, as the metrics tell it. */
export async function hostCpuSeconds({ adminUrl }: TestServer): Promise<Readonly<Record<string, number>>> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const parts = text.matchAll(/^carpool_host_cpu_seconds\{part="([\w-]+)"\} (\S+)$/gm)
  return Object.fromEntries([...parts].map(([, part = '', seconds]) => [part, Number(seconds)]))
}

/** The kernel counts the CPU time of processes in these. */
export const CLOCK_TICK_SECONDS = 0.01

/** CPU time of a process since it started, in seconds, as the kernel tells it. */
export function processCpuSeconds(pid: number): number {
  const [, fields = ''] = /\) (.*)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
  const [user, system] = fields.split(' ').slice(11, 13).map(Number)
  return ((user ?? 0) + (system ?? 0)) * CLOCK_TICK_SECONDS
}
