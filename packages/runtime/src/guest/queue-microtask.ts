import { reportUncaught } from './errors/report-uncaught.ts'
import { SafeTypeError } from './primordials.ts'

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
