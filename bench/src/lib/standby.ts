import { setTimeout as delay } from 'node:timers/promises'
import { isCarpoolHost, type CarpoolServer } from './carpool-server.ts'
import type { ProcessUsage, TreeUsage } from './tree-account.ts'

const WAIT_MS = 10_000
const LOOK_MS = 50

/**
 * Waits until there is a host in reserve, and says whether there is one in the end: a server starts none while the machine is
 * full, as it is when others use it too.
 */
export async function untilStandby(server: CarpoolServer): Promise<boolean> {
  const deadlineMs = performance.now() + WAIT_MS
  for (;;) {
    if ((await server.hosts()).some(({ state }) => state === 'standby')) return true
    if (performance.now() > deadlineMs) return false
    await delay(LOOK_MS)
  }
}

/** The host processes of a server, by what they were there for. */
export interface SplitHosts {
  /** Those that took calls, or may have. */
  readonly serving: readonly ProcessUsage[]
  /** In reserve up to now, so they cannot have run a function: a host that takes over is in reserve no more. */
  readonly standby: readonly ProcessUsage[]
}

/** Divides the host processes that were watched; to be called after the last answer and before the server stops. */
export async function splitHosts({ processes }: TreeUsage, server: CarpoolServer): Promise<SplitHosts> {
  const inReserve = new Set((await server.hosts()).filter(({ state }) => state === 'standby').map(({ pid }) => pid))
  const hosts = processes.filter(({ program }) => isCarpoolHost(program))
  return { serving: hosts.filter(({ pid }) => !inReserve.has(pid)), standby: hosts.filter(({ pid }) => inReserve.has(pid)) }
}
