import type { GuestOptions } from '../../bridge.ts'
import { cap } from '../errors/describe-error.ts'
import { inspect } from '../console/inspect.ts'
import { isUsed, readForBridge } from '../fetch/body.ts'
import { abortRequest, requestFromHost } from '../fetch/request.ts'
import { bodyOfResponse, headersProblemOf, headJsonOf, isResponse, statusOfResponse } from '../fetch/response.ts'
import type { Invocation } from '../invocation.ts'
import { apply } from '../primordials.ts'
import { ExecutionContext } from './execution-context.ts'
import type { Handler } from './find-handler.ts'
import { isThenable, whenSettled } from './settle.ts'

const SHOWN_CHARS = 200

/** Calls a handler of the form `fetch(request, env, ctx)`, which gives a Response or a promise of one. */
export function fetchHandler(callee: (...args: unknown[]) => unknown, self: unknown, options: GuestOptions): Handler {
  const { env } = options
  return (invocation) => {
    const request = requestFromHost(invocation)
    invocation.onCancel = () => abortRequest(request, undefined)
    let result
    try {
      result = apply(callee, self, [request, env, new ExecutionContext(invocation, options)])
      if (!isResponse(result) && isThenable(result)) {
        void whenSettled(result, invocation, (value) => respond(invocation, value))
        return
      }
      respond(invocation, result)
    } catch (error) {
      invocation.fail(error)
    }
  }
}

function respond(invocation: Invocation, value: unknown): void {
  if (!isResponse(value)) return invocation.refuse(describeWrong(value))
  if (statusOfResponse(value) === 0) return invocation.refuse('The handler returned Response.error().')
  const problem = headersProblemOf(value)
  if (problem !== undefined) return invocation.refuse(problem)
  const body = bodyOfResponse(value)
  if (isUsed(body)) return invocation.refuse('The body of the response was read already.')
  const head = headJsonOf(value)
  readForBridge(
    body,
    (kind, text) => invocation.answer(head, kind, text),
    (error) => invocation.fail(error),
  )
}

function describeWrong(value: unknown): string {
  if (value === undefined) return 'The handler returned undefined: a fetch handler must return a Response.'
  let shown = ''
  try {
    shown = cap(inspect(value, { depth: 0 }), SHOWN_CHARS)
  } catch {
    shown = 'a value that cannot be shown'
  }
  return `The handler returned ${shown}: a fetch handler must return a Response.`
}
