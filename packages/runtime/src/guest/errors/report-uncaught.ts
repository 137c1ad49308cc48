import { bridge } from '../port.ts'
import { current } from '../current.ts'
import { SafeTypeError } from '../primordials.ts'
import { errorText } from './describe-error.ts'

/** Logs what nothing caught: an error in a timer, a microtask, a listener or a promise given to `waitUntil`. */
export function reportUncaught(thrown: unknown, where: string): void {
  bridge.log(current, 'error', `Uncaught ${where}: ${errorText(thrown)}`)
}

/** `reportError` of the web. */
export function reportError(...args: unknown[]): void {
  if (args.length === 0) throw new SafeTypeError('reportError needs an argument.')
  reportUncaught(args[0], 'error')
}
