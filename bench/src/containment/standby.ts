import type { BenchServer } from '../lib/bench-server.ts'

const WAIT_MS = 10_000

/**
 * Waits until there is a host in reserve, and says whether there is one in the end: a server starts none while the machine is full, as it is when others
 * use it too.
 */
export async function untilStandby(server: BenchServer): Promise<boolean> {
  try {
    await server.until('a host in reserve', ({ hosts }) => hosts.some(({ state }) => state === 'standby'), WAIT_MS)
    return true
  } catch {
    return false
  }
}
