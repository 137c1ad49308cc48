import type { BodyKind, GuestFailure, InvokeHead } from '../bridge.ts'
import { entryMs } from './clock.ts'
import { jsonParse, jsonStringify, SafeMap } from './language/primordials.ts'
import { bridge } from './port.ts'
import { describeError } from './web-api/errors.ts'
import type { HostRequest } from './web-api/fetch/request.ts'

/** Those without an answer. */
const running = new SafeMap<number, Invocation>()
let maxBodyBytes = Infinity

/** From now on longer bodies are refused here: to copy half a gigabyte out of the isolate would hold up the whole host. */
export function limitBodies(bytes: number): void {
  maxBodyBytes = bytes
}

/** One call of the handler, from `invoke` to its one answer. */
export class Invocation implements HostRequest {
  readonly number: number
  readonly bodyKind: BodyKind
  readonly body: string
  /** When the entry began that brought it. */
  readonly startedMs = entryMs()
  /** Called when the invocation is canceled, if user code has asked for something that must know. */
  onCancel: (() => void) | undefined
  canceled = false
  readonly #headText: string
  #head: InvokeHead | undefined

  constructor(number: number, headText: string, bodyKind: BodyKind, body: string) {
    this.number = number
    this.#headText = headText
    this.bodyKind = bodyKind
    this.body = body
    running.set(number, this)
  }

  /** Parsed when it is first needed: many handlers never look at the request. */
  get head(): InvokeHead {
    return (this.#head ??= jsonParse(this.#headText) as InvokeHead)
  }

  /** Answers, unless the invocation has ended already. */
  answer(headJson: string, bodyKind: BodyKind, body: string): void {
    // A text has at least as many bytes as it is long; the host counts them exactly.
    if (body.length > maxBodyBytes) {
      return this.refuse(`The response body has at least ${body.length} bytes; the limit is ${maxBodyBytes}.`)
    }
    if (running.delete(this.number)) bridge.answer(this.number, headJson, bodyKind, body)
  }

  /** Ends as `exception` with what the handler threw. */
  fail(thrown: unknown): void {
    if (!running.delete(this.number)) return
    const { message, stack } = describeError(thrown)
    bridge.fail(this.number, failureJson('exception', message, stack))
  }

  /** Ends as `invalid-response`. */
  refuse(message: string, stack = ''): void {
    if (running.delete(this.number)) bridge.fail(this.number, failureJson('invalid-response', message, stack))
  }
}

function failureJson(outcome: GuestFailure['outcome'], message: string, stack: string): string {
  return `{"outcome":"${outcome}","message":${jsonStringify(message)},"stack":${jsonStringify(stack)}}`
}

/** Ends an invocation without an answer; what it still gives is dropped. */
export function cancelInvocation(number: number): void {
  const invocation = running.get(number)
  if (invocation === undefined) return
  running.delete(number)
  invocation.canceled = true
  const { onCancel } = invocation
  onCancel?.()
}

/** Whether a value is an object that could be a promise, native or not. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/**
 * Calls `use` with what a promise of user code gives; fails the invocation if it rejects. `await` takes a promise of this context
 * as it is, without a look at a `then` or a species that user code may have replaced.
 */
export async function whenSettled(value: unknown, invocation: Invocation, use: (value: unknown) => void): Promise<void> {
  try {
    use(await value)
  } catch (error) {
    invocation.fail(error)
  }
}
