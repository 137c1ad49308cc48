import type { ConnectionPool } from './connection-pool.ts'
import type { Call, CallOrder, OpenOrder } from './load-order.ts'
import { epochMs, failedCall, timedCall } from './timed-call.ts'

export interface OpenLoad {
  readonly order: OpenOrder
  readonly callOrder: CallOrder
  readonly pool: ConnectionPool
  readonly stopping: AbortSignal
}

export interface Loaded {
  readonly calls: readonly Call[]
  readonly latestStartMs: number
}

/** Begins every call when it is due, or as soon after as the process can, and never leaves one out unless it is stopped. */
export async function runOpenLoad({ order, callOrder, pool, stopping }: OpenLoad, beganMs: number): Promise<Loaded> {
  const calls: Call[] = []
  let latestStartMs = 0
  let underWay = 0
  let next = 0
  const allEnded = Promise.withResolvers<void>()

  const makeCall = async (index: number, dueMs: number): Promise<void> => {
    const plan = { path: index % callOrder.paths.length, dueMs }
    try {
      const connection = await pool.acquire()
      calls.push(await timedCall(connection, callOrder, plan))
      pool.release(connection)
    } catch (error) {
      calls.push(failedCall(plan, epochMs(), error))
    }
    underWay--
    endIfDone()
  }
  const isOver = (): boolean => next === order.dueMs.length || stopping.aborted
  const endIfDone = (): void => {
    if (underWay === 0 && isOver()) allEnded.resolve()
  }
  const tick = (): void => {
    while (!isOver()) {
      const dueMs = beganMs + (order.dueMs[next] ?? 0)
      const lateMs = epochMs() - dueMs
      if (lateMs < 0) return void setTimeout(tick, -lateMs)
      latestStartMs = Math.max(latestStartMs, lateMs)
      underWay++
      void makeCall(next++, dueMs)
    }
    endIfDone()
  }
  tick()
  await allEnded.promise
  return { calls, latestStartMs }
}
