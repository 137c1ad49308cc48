/** Promises that are rejected and that nobody awaits, when the entry that rejected them has run with all its microtasks. */
import { SafeMap, SafeWeakMap } from './language/primordials.ts'
import { library } from './libraries.ts'
import { logUncaught, worldHears } from './web-api/errors.ts'

/** Of the entry that runs, with their reasons. */
let open = new SafeMap<object, unknown>()
/** Those that were reported, if somebody listens. */
const reported = new SafeWeakMap<object, unknown>()

/** See {@link GuestEntries}. */
export function rejected(isHandled: boolean, promise: object, reason?: unknown): void {
  if (!isHandled) {
    open.set(promise, reason)
    return
  }
  if (open.delete(promise) || !reported.has(promise)) return
  const of = reported.get(promise)
  reported.delete(promise)
  if (worldHears('rejectionhandled')) library('events').reportHandled(promise, of)
}

/** Entry: tells of them. */
export function settleRejections(): void {
  if (open.size === 0) return
  const found = open
  open = new SafeMap()
  found.forEach((reason, promise) => {
    if (worldHears('rejectionhandled')) reported.set(promise, reason)
    if (worldHears('unhandledrejection') && library('events').reportRejection(promise, reason)) return
    logUncaught(reason, 'rejection of a promise', true)
  })
}
