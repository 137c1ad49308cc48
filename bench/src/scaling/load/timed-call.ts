import { ClientLeft, type HttpConnection } from './http-connection.ts'
import type { Call } from './load-order.ts'

/** Now, in ms of the epoch with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now()
}

export interface CallPlan {
  readonly path: number
  readonly dueMs: number
  readonly leaveAfterMs: number | undefined
}

/** Makes a call over a connection and says what became of it. */
export async function timedCall(connection: HttpConnection, path: string, plan: CallPlan): Promise<Call> {
  const sentMs = epochMs()
  const { leaveAfterMs } = plan
  const leaving =
    leaveAfterMs === undefined ? undefined : setTimeout(() => connection.close(new ClientLeft()), Math.max(0, leaveAfterMs))
  try {
    const { status, code, retryAfterSeconds } = await connection.get(path)
    return {
      path: plan.path,
      dueMs: plan.dueMs,
      sentMs,
      endedMs: epochMs(),
      status,
      ...(code !== undefined && { code }),
      ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
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
