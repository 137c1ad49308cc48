import { isError, isInstance, SafeError, SafeTypeError, stringIndexOf, stringSlice } from '../language/primordials.ts'
import { library, logText } from './host.ts'
import { inspect } from './console/inspect.ts'

export const MESSAGE_CHARS = 2048
export const STACK_CHARS = 8192
const CAUSES_MAX = 4

export interface ErrorDescription {
  readonly message: string
  readonly stack: string
}

/**
 * Describes anything that was thrown. Never throws itself, whatever getters, proxies or lack of stack space it meets.
 * @returns `message`: "TypeError: what"; `stack`: as V8 gives it, with those of the causes, or '' if there is none. Both capped.
 */
export function describeError(thrown: unknown): ErrorDescription {
  try {
    if (!isErrorLike(thrown)) return { message: cap(`Uncaught ${inspect(thrown)}`, MESSAGE_CHARS), stack: '' }
    const message = cap(titleOf(thrown), MESSAGE_CHARS)
    return { message, stack: cap(stackWithCauses(thrown, message), STACK_CHARS) }
  } catch {
    return { message: 'Error: the error could not be described', stack: '' }
  }
}

/** The stack of an error if it has one, else its title: what a log line shows. */
export function errorText(thrown: unknown): string {
  const { message, stack } = describeError(thrown)
  return stack === '' ? message : stack
}

export function cap(text: string, limit: number): string {
  return text.length <= limit ? text : `${stringSlice(text, 0, limit)}… (${text.length - limit} more characters)`
}

interface ErrorLike {
  readonly name?: unknown
  readonly message?: unknown
  readonly stack?: unknown
  readonly cause?: unknown
}

function isErrorLike(value: unknown): value is ErrorLike {
  if (isError(value)) return true
  // An error class of old style: made with Object.create(Error.prototype), without the slot of a true Error.
  return isInstance(SafeError, value)
}

function titleOf(error: ErrorLike): string {
  const name = textOf(error, 'name') || 'Error'
  const message = textOf(error, 'message')
  return message === '' ? name : `${name}: ${message}`
}

function stackWithCauses(error: ErrorLike, title: string): string {
  let text = stackOf(error, title)
  let cause = read(error, 'cause')
  for (let depth = 0; depth < CAUSES_MAX && cause !== undefined && cause !== null && text.length < STACK_CHARS; depth++) {
    text += `\nCaused by: ${isErrorLike(cause) ? stackOf(cause, titleOf(cause)) : inspect(cause)}`
    cause = isErrorLike(cause) ? read(cause, 'cause') : undefined
  }
  return text
}

function stackOf(error: ErrorLike, title: string): string {
  const stack = textOf(error, 'stack')
  if (stack === '') return title
  // V8 wrote the stack when the error was made; a name or message that was set later is put in front.
  const shown = cap(stack, STACK_CHARS)
  const message = textOf(error, 'message')
  if (message === '' || stringIndexOf(shown, cap(message, 100)) !== -1) return shown
  const frames = stringIndexOf(shown, '\n    at ')
  return frames === -1 ? title : title + stringSlice(shown, frames)
}

function textOf(error: ErrorLike, key: keyof ErrorLike): string {
  const value = read(error, key)
  return typeof value === 'string' ? value : ''
}

function read(error: ErrorLike, key: keyof ErrorLike): unknown {
  try {
    return error[key]
  } catch {
    return undefined
  }
}

let hears: ((type: string) => boolean) | undefined

/** Takes what tells whether the global object has listeners of a type of event. Before, it has none. */
export function setHears(ask: (type: string) => boolean): void {
  hears = ask
}

export function worldHears(type: string): boolean {
  return hears !== undefined && hears(type)
}

/**
 * Logs what nothing caught: an error in a timer, a microtask, a listener or a promise given to `waitUntil`. Listeners of the
 * global object hear of it before, and may prevent it.
 */
export function reportUncaught(thrown: unknown, where: string, isRejection = false): void {
  if (worldHears('error') && library('events').reportThrown(thrown)) return
  logUncaught(thrown, where, isRejection)
}

export function logUncaught(thrown: unknown, where: string, isRejection: boolean): void {
  logText('error', `Uncaught ${where}: ${errorText(thrown)}`, isRejection)
}

/** `reportError` of the web. */
export function reportError(...args: unknown[]): void {
  if (args.length === 0) throw new SafeTypeError('reportError needs an argument.')
  reportUncaught(args[0], 'error')
}

export function queueMicrotask(callback: () => unknown): void {
  if (typeof callback !== 'function') throw new SafeTypeError('queueMicrotask needs a function.')
  void run(callback)
}

/** What is no promise is awaited in one microtask, without a look at any prototype. */
const NEXT_MICROTASK = null as unknown as Promise<void>

async function run(callback: () => unknown): Promise<void> {
  await NEXT_MICROTASK
  try {
    callback()
  } catch (error) {
    reportUncaught(error, 'error in a microtask')
  }
}
