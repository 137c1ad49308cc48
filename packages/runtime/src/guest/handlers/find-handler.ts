import type { HandlerForm } from '@carpool/core'
import type { GuestOptions } from '../../bridge.ts'
import type { Invocation } from '../invocation.ts'
import { arrayJoin, objectKeys, SafeList } from '../language/primordials.ts'
import { handlerOfServer } from '../node-support.ts'
import { fetchHandler } from './fetch-handler.ts'
import { lambdaHandler } from './lambda-handler.ts'

/** Runs one invocation; it never throws, and the invocation answers in its own time. */
export type Handler = (invocation: Invocation) => void

export type FoundHandler =
  | { readonly ok: true; readonly form: HandlerForm; readonly handler: Handler }
  | { readonly ok: false; readonly message: string }

type Callee = (...args: unknown[]) => unknown

const NAMES_SHOWN = 20

/**
 * Finds the handler among what a module exports: the export that the options name; else the default export, which for CommonJS
 * may be `module.exports` itself; else an export called `handler`. An app or a server of `node:http` is a handler where it is
 * exported, and without any of these where it was made to listen. May throw what a getter of the exports throws.
 */
export function findHandler(exported: unknown, options: GuestOptions): FoundHandler {
  const { handlerExport } = options
  if (handlerExport !== undefined) {
    const value = read(exported, handlerExport)
    const method = fetchMethodOf(value)
    if (method !== undefined) return { ok: true, form: 'fetch', handler: fetchHandler(method, value, options) }
    const server = handlerOfServer(value, false)
    if (server !== undefined) return { ok: true, form: 'fetch', handler: fetchHandler(server, undefined, options) }
    if (typeof value === 'function') return { ok: true, form: 'lambda', handler: lambdaHandler(value as Callee, options) }
    return {
      ok: false,
      message: `The export ${handlerExport} is ${value === undefined ? 'not there' : 'neither a function nor an object with a fetch method'}; ${listExports(exported)}.`,
    }
  }
  const main = read(exported, 'default') ?? exported
  const method = fetchMethodOf(main)
  if (method !== undefined) return { ok: true, form: 'fetch', handler: fetchHandler(method, main, options) }
  const server = handlerOfServer(main, false)
  if (server !== undefined) return { ok: true, form: 'fetch', handler: fetchHandler(server, undefined, options) }
  if (typeof main === 'function') return { ok: true, form: 'fetch', handler: fetchHandler(main as Callee, undefined, options) }
  const lambda = read(exported, 'handler')
  if (typeof lambda === 'function') return { ok: true, form: 'lambda', handler: lambdaHandler(lambda as Callee, options) }
  const waiting = handlerOfServer(main, true)
  if (waiting !== undefined) return { ok: true, form: 'fetch', handler: fetchHandler(waiting, undefined, options) }
  return {
    ok: false,
    message: `Expected a default export with a fetch method, a function as default export, or a function called handler; ${listExports(exported)}.`,
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function read(exported: unknown, name: string): unknown {
  return isObject(exported) ? (exported as Record<string, unknown>)[name] : undefined
}

function fetchMethodOf(value: unknown): Callee | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const method = (value as { fetch?: unknown }).fetch
  return typeof method === 'function' ? (method as Callee) : undefined
}

function listExports(exported: unknown): string {
  const names = isObject(exported) ? objectKeys(exported) : undefined
  if (names === undefined || names.length === 0) return 'the module exports nothing'
  const shown = new SafeList<string>()
  for (let index = 0; index < names.length && index < NAMES_SHOWN; index++) shown[index] = names[index]!
  const more = names.length > NAMES_SHOWN ? ` and ${names.length - NAMES_SHOWN} more` : ''
  return `the module exports ${arrayJoin(shown, ', ')}${more}`
}
