import { apply, SafeMap, SafePromise, SafeRangeError, SafeTypeError } from './language/primordials.ts'
import { toNumber } from './language/values.ts'
import { bridge, carriedByTimer, carryForTimer, enter, invocationNow } from './port.ts'
import { reportUncaught } from './web-api/errors.ts'

/** The longest delay that a timer can have; one that is longer fires at once, as in Node.js. */
const DELAY_MAX_MS = 0x7fffffff

/** Most timers that an isolate may have open at the same time: the host keeps each, outside the memory limit. */
const OPEN_MAX = 50_000

type Callback = (...args: unknown[]) => unknown

/** What `this` is in a callback. */
const world = globalThis
let last = 0

let timerOf: (id: unknown) => Timeout | undefined
let fire: (timer: Timeout) => void
let begin: (timer: Timeout) => void
let clear: (timer: Timeout) => void

/** What a timer is to user code: an object as in Node.js, which wherever a number is wanted is one, as on the web. */
class Timeout {
  readonly #number = ++last
  readonly #callback: Callback
  readonly #args: unknown[]
  readonly #delayMs: number
  readonly #repeats: boolean
  readonly #carried = carriedByTimer()
  #invocation: number
  #hasRef = true
  #isArmed = false
  #isCleared = false

  static {
    timerOf = (id) => (typeof id === 'object' && id !== null && #number in id ? id : timers.get(toNumber(id)))
    begin = (timer) => {
      if (timers.size >= OPEN_MAX && !timers.has(timer.#number)) {
        throw new SafeRangeError(`A function can have ${OPEN_MAX} timers open at the same time, not more.`)
      }
      timers.set(timer.#number, timer)
      timer.#isArmed = true
      bridge.startTimer(timer.#invocation, timer.#number, timer.#delayMs)
    }
    fire = (timer) => {
      enter(timer.#invocation)
      carryForTimer(timer.#carried)
      timer.#isArmed = false
      if (!timer.#repeats) timers.delete(timer.#number)
      try {
        apply(timer.#callback, world, timer.#args)
      } catch (error) {
        reportUncaught(error, 'error in a timer')
      }
      // A callback may have refreshed its own interval, which is armed then.
      if (timer.#repeats && !timer.#isArmed && timers.has(timer.#number)) begin(timer)
    }
    clear = (timer) => {
      timer.#isCleared = true
      if (timers.delete(timer.#number)) bridge.stopTimer(timer.#number)
    }
  }

  constructor(callback: Callback, delayMs: number, args: unknown[], repeats: boolean, invocation: number) {
    this.#callback = callback
    this.#delayMs = delayMs
    this.#args = args
    this.#repeats = repeats
    this.#invocation = invocation
  }

  /** Without effect, as `unref`: no timer keeps a process. */
  ref(): this {
    this.#hasRef = true
    return this
  }

  unref(): this {
    this.#hasRef = false
    return this
  }

  hasRef(): boolean {
    return this.#hasRef
  }

  /** Begins anew, also when it has fired; without effect once it was cleared. */
  refresh(): this {
    if (this.#isCleared) return this
    this.#invocation = invocationNow()
    begin(this)
    return this
  }

  close(): this {
    clear(this)
    return this
  }

  [Symbol.toPrimitive](): number {
    return this.#number
  }

  [Symbol.dispose](): void {
    clear(this)
  }
}

const timers = new SafeMap<number, Timeout>()

function start(
  callback: unknown,
  delay: unknown,
  args: unknown[],
  repeats: boolean,
  invocation: number = invocationNow(),
): Timeout {
  if (typeof callback !== 'function') throw new SafeTypeError('The callback of a timer must be a function.')
  const ms = toNumber(delay)
  const timer = new Timeout(callback as Callback, ms > 0 && ms <= DELAY_MAX_MS ? ms : 0, args, repeats, invocation)
  begin(timer)
  return timer
}

function stop(id: unknown): void {
  const timer = timerOf(id)
  if (timer !== undefined) clear(timer)
}

/** Entry: the time of a timer has come. It runs on behalf of the invocation that started it. */
export function fireTimer(number: number): void {
  const timer = timers.get(number)
  if (timer !== undefined) fire(timer)
}

/** Resolves in an entry of its own on behalf of an invocation, so that what waits for the isolate gets in before. */
export function nextEntry(invocation: number): Promise<void> {
  return new SafePromise((resolve) => void start(resolve, 0, [], false, invocation))
}

export function setTimeout(callback: unknown, delay?: unknown, ...args: unknown[]): Timeout {
  return start(callback, delay, args, false)
}

/** An interval is armed again when its callback has returned, so a slow callback never piles up calls. */
export function setInterval(callback: unknown, delay?: unknown, ...args: unknown[]): Timeout {
  return start(callback, delay, args, true)
}

export function setImmediate(callback: unknown, ...args: unknown[]): Timeout {
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
