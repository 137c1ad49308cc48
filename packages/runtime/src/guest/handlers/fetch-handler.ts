import type { GuestOptions } from '../../bridge.ts'
import { epochMs } from '../clock.ts'
import { type Invocation, isThenable, whenSettled } from '../invocation.ts'
import { apply, max, SafeTypeError } from '../language/primordials.ts'
import { inspect } from '../web-api/console/inspect.ts'
import { cap, reportUncaught } from '../web-api/errors.ts'
import { type Body, cancelBody, isUsed, sendWhole } from '../web-api/fetch/body.ts'
import { openBody } from '../web-api/fetch/body-sending.ts'
import { abortRequest, requestFromHost } from '../web-api/fetch/request.ts'
import {
  bodyOfResponse,
  headersProblemOf,
  headJsonOf,
  isResponse,
  statusOfResponse,
  webSocketOf,
} from '../web-api/fetch/response.ts'
import { acceptWebSocket } from './web-socket-answer.ts'
import type { Handler } from './find-handler.ts'

const SHOWN_CHARS = 200

/** Calls a handler of the form `fetch(request, env, ctx)`, which gives a Response or a promise of one. */
export function fetchHandler(callee: (...args: unknown[]) => unknown, self: unknown, options: GuestOptions): Handler {
  const { env } = options
  return (invocation) => {
    const request = requestFromHost(invocation)
    invocation.onCancel = (reason) => abortRequest(request, reason)
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
  const body = bodyOfResponse(value)
  const problem = headersProblemOf(value)
  if (problem !== undefined) {
    cancelBody(body, new SafeTypeError(problem))
    return invocation.refuse(problem)
  }
  if (isUsed(body)) return invocation.refuse('The body of the response was read already.')
  const head = headJsonOf(value)
  if (webSocketOf(value) !== null) return acceptWebSocket(invocation, value, head)
  if (!sendWhole(body, (kind, text) => invocation.answer(head, kind, text))) answerStream(invocation, head, body!)
}

/** Answers with what a stream gives, which is canceled with the invocation. */
function answerStream(invocation: Invocation, head: string, body: Body): void {
  // The client left while the handler ran.
  if (invocation.cancelReason !== undefined) return cancelBody(body, invocation.cancelReason)
  const sending = openBody(body)
  const channel = invocation.answerStream(head)
  if (channel === undefined) return sending.cancel(undefined)
  sending.by(channel, (error) => invocation.fail(error))
  invocation.whenCanceled((reason) => sending.cancel(reason))
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

/** The third argument of a fetch handler. */
export class ExecutionContext {
  readonly #invocation: Invocation
  readonly #options: GuestOptions

  constructor(invocation: Invocation, options: GuestOptions) {
    this.#invocation = invocation
    this.#options = options
  }

  get invocationId(): string {
    return this.#invocation.head.invocationId
  }

  get functionName(): string {
    return this.#options.functionName
  }

  get revision(): string {
    return this.#options.revision
  }

  /** Work that goes on after the response; if it fails, that is logged. */
  waitUntil(promise: unknown): void {
    void watch(promise)
  }

  /** Does nothing: there is no origin to pass on to. */
  passThroughOnException(): void {}

  /** Until the wall limit ends the invocation; never below 0. */
  getRemainingTimeInMillis(): number {
    return remainingMs(this.#invocation, this.#options)
  }

  get [Symbol.toStringTag](): string {
    return 'ExecutionContext'
  }
}

async function watch(promise: unknown): Promise<void> {
  try {
    await promise
  } catch (error) {
    reportUncaught(error, 'rejection in waitUntil', true)
  }
}

export function remainingMs(invocation: Invocation, options: GuestOptions): number {
  return max(0, invocation.startedMs + options.limits.wallMs - epochMs())
}
