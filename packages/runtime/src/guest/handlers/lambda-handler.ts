import type { GuestOptions } from '../../bridge.ts'
import type { Invocation } from '../invocation.ts'
import { apply } from '../primordials.ts'
import type { Handler } from './find-handler.ts'
import { lambdaContext } from './lambda-context.ts'
import { lambdaEvent } from './lambda-event.ts'
import { answerLambda } from './lambda-result.ts'
import { isThenable, whenSettled } from './settle.ts'

/** The argument that only a handler which answers by callback declares. */
const CALLBACK_PARAMETERS = 3

/**
 * Calls a handler of AWS Lambda's form with an API Gateway event of payload 2.0. A handler with three parameters answers by the
 * callback, or by the promise it returns; any other by what it returns.
 */
export function lambdaHandler(callee: (...args: unknown[]) => unknown, options: GuestOptions): Handler {
  const usesCallback = callee.length >= CALLBACK_PARAMETERS
  return (invocation) => {
    const settle = (value: unknown): void => answerLambda(invocation, value)
    const callback = (error?: unknown, value?: unknown): void => {
      if (error !== undefined && error !== null) invocation.fail(error)
      else trySettle(invocation, settle, value)
    }
    try {
      const result = apply(callee, undefined, [lambdaEvent(invocation, options), lambdaContext(invocation, options), callback])
      if (isThenable(result)) void whenSettled(result, invocation, settle)
      else if (!usesCallback) settle(result)
    } catch (error) {
      invocation.fail(error)
    }
  }
}

function trySettle(invocation: Invocation, settle: (value: unknown) => void, value: unknown): void {
  try {
    settle(value)
  } catch (error) {
    invocation.fail(error)
  }
}
