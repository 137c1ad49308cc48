import { apply, SafeMap, SafePromise, SafeRangeError, SafeTypeError } from './language/primordials.ts'
import { toNumber } from './language/values.ts'
import { bridge, currentInvocation, enter } from './port.ts'
import { reportUncaught } from './web-api/errors.ts'

/** The longest delay that a timer can have; one that is longer fires at once, as in Node.js. */
const DELAY_MAX_MS = 0x7fffffff

/** Most timers that an isolate may have open at the same time: the host keeps each, outside the memory limit. */
const OPEN_MAX = 50_000

interface Timer {
  readonly invocation: number
  readonly callback: (...args: unknown[]) => unknown
  readonly args: unknown[]
  readonly delayMs: number
  readonly repeats: boolean
}

/** What `this` is in a callback. */
const world = globalThis
const timers = new SafeMap<number, Timer>()
let last = 0

function start(
  callback: unknown,
  delay: unknown,
  args: unknown[],
  repeats: boolean,
  invocation: number = currentInvocation,
): number {
  if (typeof callback !== 'function') throw new SafeTypeError('The callback of a timer must be a function.')
  const ms = toNumber(delay)
  if (timers.size >= OPEN_MAX) throw new SafeRangeError(`A function can have ${OPEN_MAX} timers open at the same time, not more.`)
  const delayMs = ms > 0 && ms <= DELAY_MAX_MS ? ms : 0
  const number = ++last
  timers.set(number, { invocation, callback: callback as Timer['callback'], args, delayMs, repeats })
  bridge.startTimer(invocation, number, delayMs)
  return number
}

function stop(id: unknown): void {
  const number = toNumber(id)
  if (timers.delete(number)) bridge.stopTimer(number)
}

/** Entry: the time of a timer has come. It runs on behalf of the invocation that started it. */
export function fireTimer(number: number): void {
  const timer = timers.get(number)
  if (timer === undefined) return
  enter(timer.invocation)
  if (!timer.repeats) timers.delete(number)
  try {
    apply(timer.callback, world, timer.args)
  } catch (error) {
    reportUncaught(error, 'error in a timer')
  }
  if (timer.repeats && timers.has(number)) bridge.startTimer(timer.invocation, number, timer.delayMs)
}

/** Resolves in an entry of its own on behalf of an invocation, so that what waits for the isolate gets in before. */
export function nextEntry(invocation: number): Promise<void> {
  return new SafePromise((resolve) => void start(resolve, 0, [], false, invocation))
}

export function setTimeout(callback: unknown, delay?: unknown, ...args: unknown[]): number {
  return start(callback, delay, args, false)
}

/** An interval is armed again when its callback has returned, so a slow callback never piles up calls. */
export function setInterval(callback: unknown, delay?: unknown, ...args: unknown[]): number {
  return start(callback, delay, args, true)
}

export function setImmediate(callback: unknown, ...args: unknown[]): number {
  return start(callback, 0, args, false)
}

export function clearTimeout(id?: unknown): void {
  stop(id)
}

export function clearInterval(id?: unknown): void {
  stop(id)
}

export function clearImmediate(id?: unknown): void {
  stop(id)
}
