import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionPool } from './connection-pool.ts'
import type { HttpConnection } from './http-connection.ts'
import type { Call, CallOrder, ClosedOrder } from './load-order.ts'
import { epochMs, failedCall, timedCall } from './timed-call.ts'

export interface ClosedLoad {
  readonly order: ClosedOrder
  readonly callOrder: CallOrder
  readonly pool: ConnectionPool
  readonly stopping: AbortSignal
}

/** A client that could not connect tries again after so long. */
const RECONNECT_PAUSE_MS = 100

/** Runs all clients until each has made its calls, the time is over or they are stopped. */
export async function runClosedLoad({ order, callOrder, pool, stopping }: ClosedLoad, beganMs: number): Promise<Call[]> {
  const { clients, rampMs = 0, durationMs = Number.POSITIVE_INFINITY, callsEach = Number.POSITIVE_INFINITY } = order
  const calls: Call[] = []
  const isOver = (): boolean => stopping.aborted || epochMs() - beganMs >= durationMs

  const runClient = async (client: number): Promise<void> => {
    const path = client % callOrder.paths.length
    if (rampMs > 0) await pause(client * rampMs, stopping)
    let connection: HttpConnection | undefined
    for (let made = 0; made < callsEach && !isOver(); made++) {
      if (connection?.isOpen !== true) {
        const dueMs = epochMs()
        try {
          connection = await pool.acquire()
        } catch (error) {
          calls.push(failedCall({ path, dueMs }, dueMs, error))
          await pause(RECONNECT_PAUSE_MS, stopping)
          continue
        }
      }
      const call = await timedCall(connection, callOrder, { path, dueMs: epochMs() })
      calls.push(call)
      const pauseMs = pauseAfter(call, order)
      if (pauseMs > 0) await pause(pauseMs, stopping)
      if (order.endsWithConnection === true && !connection.isOpen) return
    }
    if (connection !== undefined) pool.release(connection)
  }
  await Promise.all(Array.from({ length: clients }, (_, client) => runClient(client)))
  return calls
}

function pauseAfter({ retryAfterSeconds }: Call, { pauseMs = 0, heedsRetryAfter = false }: ClosedOrder): number {
  return heedsRetryAfter && retryAfterSeconds !== undefined ? Math.max(pauseMs, retryAfterSeconds * 1000) : pauseMs
}

async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal: stopping }).catch(() => {})
}
