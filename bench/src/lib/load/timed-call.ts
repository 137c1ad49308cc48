import { ClientLeft, type HttpConnection } from './http-connection.ts'
import type { Call, CallOrder } from './load-order.ts'

/** Now, in ms of the epoch with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}

export type CallPlan = Pick<Call, 'path' | 'dueMs'>

/** Makes a call over a connection and says what became of it. */
export async function timedCall(connection: HttpConnection, order: CallOrder, plan: CallPlan): Promise<Call> {
  const sentMs = epochMs()
  const { paths, method = 'GET', bodies, leaveAfterMs, keepsIds = false } = order
  const leaving =
    leaveAfterMs === undefined ? undefined : setTimeout(() => connection.close(new ClientLeft()), Math.max(0, leaveAfterMs))
  try {
    const { status, code, id, retryAfterSeconds, body } = await connection.request(method, paths[plan.path] ?? '/')
    const isWrong = bodies !== undefined && status === 200 && body !== bodies[plan.path]
    return {
      path: plan.path,
      dueMs: plan.dueMs,
      sentMs,
      endedMs: epochMs(),
      status,
      ...(code !== undefined && { code }),
      ...(keepsIds && id !== undefined && { id }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
      ...(isWrong && { failure: 'wrong answer' }),
    }
  } catch (error) {
    return failedCall(plan, sentMs, error)
  } finally {
    clearTimeout(leaving)
  }
}

/** A call without an answer. */
export function failedCall({ path, dueMs }: CallPlan, sentMs: number, error: unknown): Call {
  const { code, message } = error as NodeJS.ErrnoException
  return { path, dueMs, sentMs, endedMs: epochMs(), status: 0, failure: code ?? message }
}
