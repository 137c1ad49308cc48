import type { NodeSupport } from '@carpool/core'
import {
  BODY_KINDS,
  type BodyKind,
  ENTRIES,
  type GuestEntries,
  type GuestOptions,
  type LoadReport,
  NO_INVOCATION,
} from '../bridge.ts'
import { limitBodies } from './body-limit.ts'
import { streamAbort, streamCredit, streamData } from './channels.ts'
import { letClockRun, markClock, startClock } from './clock.ts'
import { endEntry, expectEntries } from './entry-end.ts'
import { addWebAssembly, fillProcess, installGlobals } from './globals.ts'
import { findHandler, type Handler } from './handlers/find-handler.ts'
import { cancelInvocation, Invocation, isThenable, whenSettled } from './invocation.ts'
import { apply, isInstance, jsonParse, jsonStringify, SafePromise } from './language/primordials.ts'
import { beginTurn, endTurn, nodeSupport, offerModules } from './node-support.ts'
import { bridge, connectBridge, enter, mute } from './port.ts'
import { rejected, settleRejections } from './rejections.ts'
import { fireTimer } from './timers.ts'
import { socketClosed, socketConnected } from './sockets.ts'
import { describeError } from './web-api/errors.ts'
import { valueOfHeader } from './web-api/fetch/headers.ts'
import type { Request } from './web-api/fetch/request.ts'
import { headJsonOf, Response } from './web-api/fetch/response.ts'
import { library } from './libraries.ts'
import { fetchHead, settleFetch } from './fetches.ts'

export { shareCore } from './libraries.ts'

/** Makes a bare context into the world of a function. */
export function boot(names: string, ...functions: unknown[]): GuestEntries {
  connectBridge(names, functions)
  startClock()
  installGlobals()
  return { load, dispatch, rejected, warmUp }
}

const NO_HANDLER: Handler = () => {}
let handler: Handler = NO_HANDLER

/**
 * Loads a function and invokes it, with nothing that is seen of it, and runs what else most functions need: V8 keeps the code of
 * it for the isolates after this one, the process's first.
 */
function warmUp(): void {
  const fetch = (request: Request): Response => {
    valueOfHeader(request.headers, request.method + request.url)
    headJsonOf(Response.json({}))
    return new Response('', { status: 200, headers: { a: 'b' } })
  }
  const head = '{"invocationId":"","method":"GET","url":"http://localhost/","headers":[["a","b"]],"clientIp":""}'
  const unmute = mute()
  load('{"env":{},"limits":{}}', () => ({ default: { fetch } }))
  // Not an entry: from the first one on, ends of entries are awaited (expectEntries).
  dispatch(0)
  invoke(NO_INVOCATION, head, 'none', '')
  // Called to be compiled: only functions call them that have a limit on bodies, or handlers that await.
  limitBodies(Infinity)
  const unseen = new Invocation(NO_INVOCATION, head, 'none', '')
  isThenable(unseen)
  void whenSettled(unseen, unseen, () => {})
  cancelInvocation(NO_INVOCATION)
  unmute()
  handler = NO_HANDLER
  library('url')
}

/** Runs the module scope, which may await, and finds the handler in what it exports. */
function load(optionsText: string, factory: (support: NodeSupport) => unknown): void {
  markClock()
  beginTurn()
  enter(NO_INVOCATION)
  const options = jsonParse(optionsText) as GuestOptions
  fillProcess(options.env)
  if (options.maxBodyBytes !== undefined) limitBodies(options.maxBodyBytes)
  if (options.clock === 'running') letClockRun()
  const { memoryMb } = options.limits
  const compileFiles = options.webAssembly === true ? addWebAssembly(memoryMb, true) : undefined
  offerModules((files) => (compileFiles ?? addWebAssembly(memoryMb, false))(files))
  try {
    const exported = apply(factory, undefined, [nodeSupport])
    if (isInstance(SafePromise, exported)) void loadLater(exported as Promise<unknown>, options)
    else adopt(exported, options)
  } catch (error) {
    reportFailure(error)
  }
  offerModules(undefined)
  endTurn()
}

async function loadLater(exported: Promise<unknown>, options: GuestOptions): Promise<void> {
  try {
    adopt(await exported, options)
  } catch (error) {
    reportFailure(error)
  }
}

function adopt(exported: unknown, options: GuestOptions): void {
  const found = findHandler(exported, options)
  if (found.ok) {
    handler = found.handler
    report({ ok: true, form: found.form })
  } else {
    report({ ok: false, code: 'no-handler', message: found.message, stack: '' })
  }
}

function reportFailure(error: unknown): void {
  report({ ok: false, code: 'load-failed', ...describeError(error) })
}

function report(what: LoadReport): void {
  bridge.loaded(reportJson(what))
}

// Written by hand: the module scope may have put a toJSON on Object.prototype.
function reportJson(report: LoadReport): string {
  if (report.ok) return `{"ok":true,"form":"${report.form}"}`
  return `{"ok":false,"code":"${report.code}","message":${jsonStringify(report.message)},"stack":${jsonStringify(report.stack)}}`
}

function invoke(invocation: number, head: string, bodyKind: BodyKind, body: string): void {
  enter(invocation)
  handler(new Invocation(invocation, head, bodyKind, body))
}

function cancel(invocation: number): void {
  enter(invocation)
  try {
    cancelInvocation(invocation)
  } finally {
    bridge.canceled(invocation)
  }
}

function dispatch(op: number, number = 0, text = '', kind = 0, given: string | Uint8Array<ArrayBuffer> = ''): void {
  if (op === 0) return
  // Part of the entry before.
  if (op === ENTRIES.settleRejections) {
    settleRejections()
    return endTurn()
  }
  if (op === ENTRIES.endEntry) {
    endEntry()
    return endTurn()
  }
  expectEntries()
  markClock()
  beginTurn()
  if (typeof given !== 'string') {
    streamData(number, text, kind, given)
    return endTurn()
  }
  const body = given
  switch (op) {
    case ENTRIES.invoke:
      invoke(number, text, BODY_KINDS[kind]!, body)
      break
    case ENTRIES.cancel:
      cancel(number)
      break
    case ENTRIES.fireTimer:
      fireTimer(number)
      break
    case ENTRIES.settleFetch:
      settleFetch(number, text, BODY_KINDS[kind]!, body)
      break
    case ENTRIES.fetchHead:
      fetchHead(number, text)
      break
    case ENTRIES.streamData:
      streamData(number, text, kind, body)
      break
    case ENTRIES.streamCredit:
      streamCredit(number, kind)
      break
    case ENTRIES.streamAbort:
      streamAbort(number, text, kind)
      break
    case ENTRIES.socketConnected:
      socketConnected(number, text)
      break
    case ENTRIES.socketClosed:
      socketClosed(number, text)
      break
    case ENTRIES.rehearse:
      mute()
      invoke(NO_INVOCATION, text, 'none', '')
  }
  endTurn()
}
