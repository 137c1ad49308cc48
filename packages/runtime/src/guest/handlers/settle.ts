import type { Invocation } from '../invocation.ts'

/** Whether a value is an object that could be a promise, native or not. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/**
 * Calls `settle` with what a promise of user code gives, and fails the invocation with what it rejects with. `await` takes a promise of
 * this context as it is, without looking at a `then` or a species that user code may have replaced.
 */
export async function whenSettled(value: unknown, invocation: Invocation, settle: (value: unknown) => void): Promise<void> {
  try {
    settle(await value)
  } catch (error) {
    invocation.fail(error)
  }
}
