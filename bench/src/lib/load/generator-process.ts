/** The process behind `startGenerator`: takes an order, gets ready, begins when told, and hands over what became of the calls. */
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { runClosedLoad } from './closed-load.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { LoadOrder, LoadResult } from './load-order.ts'
import { runOpenLoad } from './open-load.ts'
import { epochMs } from './timed-call.ts'

const DEFAULT_MAX_CONNECTIONS = 12_000

const [order] = (await once(process, 'message')) as [LoadOrder]
const { load } = order
// Whoever started this process is gone, and with it the sense of the load.
process.once('disconnect', () => process.exit(1))
if (order.takesPrecedence === true) takePrecedence()
const pool = new ConnectionPool(new URL(order.origin), order.maxConnections ?? DEFAULT_MAX_CONNECTIONS)
await pool.fill(load.kind === 'closed' ? load.clients : (order.openConnections ?? 0)).catch(async (error: Error) => {
  await tell(error.message)
  process.exit(1)
})

const told = once(process, 'message') as Promise<[number]>
await tell('ready')
const [beganMs] = await told
const stopping = new AbortController()
process.once('message', () => stopping.abort())
await delay(Math.max(0, beganMs - epochMs()))

const startCpu = process.cpuUsage()
const given = { callOrder: order, pool, stopping: stopping.signal }
const { calls, latestStartMs } =
  load.kind === 'open'
    ? await runOpenLoad({ order: load, ...given }, beganMs)
    : { calls: await runClosedLoad({ order: load, ...given }, beganMs), latestStartMs: 0 }
const endedMs = epochMs()
const { user, system } = process.cpuUsage(startCpu)
const result: LoadResult = {
  calls,
  beganMs,
  endedMs,
  latestStartMs,
  connectionsOpened: pool.opened,
  generatorCores: (user + system) / 1000 / (endedMs - beganMs),
}
pool.closeAll()
await tell(result)
process.disconnect?.()

/** Resolves once it is sent: a process that ends would take it with it. */
function tell(message: string | LoadResult): Promise<unknown> {
  return new Promise((resolve) => process.send?.(message, resolve))
}

/** Without the right to it, latencies hold what the system lets this process wait for a core. */
function takePrecedence(): void {
  try {
    setPriority(0, constants.priority.PRIORITY_HIGHEST)
  } catch {
    // Not allowed to this user.
  }
}
