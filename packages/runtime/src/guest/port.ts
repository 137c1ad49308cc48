import type { LogLevel } from '@carpool/core'
import { BODY_KINDS, type BodyKind, type GuestBridge, LOG_LEVELS, SAYS } from '../bridge.ts'
import { spendCall, spendText, startCredits } from './credits.ts'
import { stringSplit } from './primordials.ts'

let host: GuestBridge

/** Takes the functions that the host gives to `boot`: `names` says what each is, in order, between commas. */
export function connectBridge(names: string, functions: readonly unknown[]): void {
  const connected = { __proto__: null } as unknown as Record<string, unknown>
  const list = stringSplit(names, ',')
  for (let index = 0; index < list.length; index++) connected[list[index]!] = functions[index]
  host = connected as unknown as GuestBridge
  startCredits(() => host.drain())
}

function indexIn(list: readonly string[], text: string): number {
  let index = 0
  while (list[index] !== text) index++
  return index
}

/**
 * All that the runtime can say, as this context holds it: a module variable that user code cannot reach, for neither a global
 * nor an object that is handed out leads to it. It counts against the credits.
 */
export const bridge = {
  loaded(report: string): void {
    host.say(SAYS.loaded, 0, 0, 0, report, '')
  },
  answer(invocation: number, head: string, kind: BodyKind, body: string): void {
    spendText(head.length + body.length)
    host.say(SAYS.answer, invocation, 0, indexIn(BODY_KINDS, kind), head, body)
  },
  fail(invocation: number, failure: string): void {
    spendText(failure.length)
    host.say(SAYS.fail, invocation, 0, 0, failure, '')
  },
  canceled(invocation: number): void {
    host.say(SAYS.canceled, invocation, 0, 0, '', '')
  },
  startTimer(invocation: number, timer: number, delayMs: number): void {
    spendCall(0)
    host.say(SAYS.startTimer, invocation, timer, delayMs, '', '')
  },
  stopTimer(timer: number): void {
    spendCall(0)
    host.say(SAYS.stopTimer, timer, 0, 0, '', '')
  },
  startFetch(invocation: number, fetch: number, head: string, kind: BodyKind, body: string): void {
    spendCall(head.length + body.length)
    host.say(SAYS.startFetch, invocation, fetch, indexIn(BODY_KINDS, kind), head, body)
  },
  stopFetch(fetch: number): void {
    spendCall(0)
    host.say(SAYS.stopFetch, fetch, 0, 0, '', '')
  },
  log(invocation: number, level: LogLevel, text: string): void {
    spendCall(text.length)
    host.say(SAYS.log, invocation, 0, indexIn(LOG_LEVELS, level), text, '')
  },
  entropy(): string {
    spendCall(0)
    return host.entropy()
  },
}
