import type { Env, FetchHandler, FunctionContext } from './define.ts'
import { type LambdaCallback, type LambdaContext, type LambdaHandler, toLambdaEvent, toResponse } from './lambda.ts'

/**
 * What can be called: an object with `fetch`; a function, which is taken for a Lambda handler; or what a module exports, where
 * `default` comes before `handler` and a function as `default` has the parameters of `fetch`.
 */
export type Invocable<E = Env> =
  | FetchHandler<E>
  | LambdaHandler
  | { readonly default: FetchHandler<E> | FetchHandler<E>['fetch'] }
  | { readonly handler: LambdaHandler }

export interface InvokeOptions<E = Env> {
  /** Default: no variables. */
  readonly env?: E
  /** Default: `test`. */
  readonly functionName?: string
  /** What `getRemainingTimeInMillis` counts down from; the call is not ended. In ms; default: 30000. */
  readonly timeoutMs?: number
}

interface Call {
  readonly invocationId: string
  readonly functionName: string
  readonly startedMs: number
  readonly timeoutMs: number
}

const REVISION = '0000000000000000'
const CALLBACK_PARAMETERS = 3

/**
 * Calls a handler in this process, for unit tests, with requests and answers mapped as the host maps them. What the handler
 * throws is thrown; what it gave to `waitUntil` has ended when this returns.
 * @param request a `Request`, a URL, or a path
 * @throws TypeError if the handler gives something that is no response
 */
export async function invoke<E = Env>(
  target: Invocable<E>,
  request: Request | string,
  options: InvokeOptions<E> = {},
): Promise<Response> {
  const { env = {} as E, functionName = 'test', timeoutMs = 30_000 } = options
  const call: Call = { invocationId: crypto.randomUUID(), functionName, startedMs: Date.now(), timeoutMs }
  const sent = typeof request === 'string' ? new Request(urlOf(request)) : request
  const found = findHandler(target)
  return found.form === 'fetch' ? callFetch(found.handler, sent, env, call) : callLambda(found.handler, sent, call)
}

/** A path is never a host, even if it begins with two slashes. */
function urlOf(text: string): URL {
  return text.startsWith('/') ? new URL(`http://localhost${text}`) : new URL(text, 'http://localhost')
}

type Found<E> =
  | { readonly form: 'fetch'; readonly handler: FetchHandler<E> }
  | { readonly form: 'lambda'; readonly handler: LambdaHandler }

function findHandler<E>(target: Invocable<E>): Found<E> {
  if (typeof target === 'function') return { form: 'lambda', handler: target }
  const main = (target as { default?: unknown }).default ?? target
  if (hasFetch<E>(main)) return { form: 'fetch', handler: main }
  if (typeof main === 'function') {
    const callee = main as FetchHandler<E>['fetch']
    return { form: 'fetch', handler: { fetch: (request, env, context) => callee(request, env, context) } }
  }
  const { handler } = target as { handler?: unknown }
  if (typeof handler === 'function') return { form: 'lambda', handler: handler as LambdaHandler }
  throw new TypeError('There is no handler: expected an object with a fetch method, a function, or a module that exports one.')
}

function hasFetch<E>(value: unknown): value is FetchHandler<E> {
  return typeof value === 'object' && value !== null && typeof (value as { fetch?: unknown }).fetch === 'function'
}

async function callFetch<E>(handler: FetchHandler<E>, request: Request, env: E, call: Call): Promise<Response> {
  const pending: Array<PromiseLike<unknown>> = []
  const context: FunctionContext = {
    invocationId: call.invocationId,
    functionName: call.functionName,
    revision: REVISION,
    waitUntil: (promise) => void pending.push(promise),
    passThroughOnException: () => {},
    getRemainingTimeInMillis: () => remainingMs(call),
  }
  const response: unknown = await handler.fetch(request, env, context)
  // One promise may start another.
  for (const promise of pending) {
    await Promise.resolve(promise).catch((error: unknown) => console.error('rejection in waitUntil', error))
  }
  if (!(response instanceof Response))
    throw new TypeError(`The handler returned ${kindOf(response)}: a fetch handler must return a Response.`)
  if (response.type === 'error') throw new TypeError('The handler returned Response.error().')
  if (response.bodyUsed) throw new TypeError('The body of the response was read already.')
  return response
}

async function callLambda(handler: LambdaHandler, request: Request, call: Call): Promise<Response> {
  const event = await toLambdaEvent(request, call)
  const context: LambdaContext = {
    functionName: call.functionName,
    functionVersion: REVISION,
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${call.functionName}`,
    memoryLimitInMB: '256',
    awsRequestId: call.invocationId,
    logGroupName: `/aws/lambda/${call.functionName}`,
    logStreamName: `[${REVISION}]`,
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => remainingMs(call),
  }
  // In an object, as a promise given to the callback is a value like any other.
  const { result } = await new Promise<{ result: unknown }>((resolve, reject) => {
    const callback: LambdaCallback = (error, value) => {
      if (error === undefined || error === null) resolve({ result: value })
      else reject(error)
    }
    const returned: unknown = handler(event, context, callback)
    if (isThenable(returned)) returned.then((value) => resolve({ result: value }), reject)
    else if (handler.length < CALLBACK_PARAMETERS) resolve({ result: returned })
  })
  return toResponse(result)
}

function remainingMs({ startedMs, timeoutMs }: Call): number {
  return Math.max(0, startedMs + timeoutMs - Date.now())
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
