import type { GuestBridge } from '../bridge.ts'
import { spendCall, spendText, startCredits } from './credits.ts'
import { stringSplit } from './primordials.ts'
import { useEntryClock } from './spans.ts'

/**
 * The bridge, as this context holds it: a module variable that user code cannot reach, for neither a global nor an object that is
 * handed out leads to it. Its calls count against the credits.
 */
export let bridge: GuestBridge

/** Takes the callbacks that the host gives to `boot`: `names` says what each is, in order, between commas. */
export function connectBridge(names: string, functions: readonly unknown[]): void {
  const connected = { __proto__: null } as unknown as Record<string, unknown>
  const list = stringSplit(names, ',')
  for (let index = 0; index < list.length; index++) connected[list[index]!] = functions[index]
  const host = connected as unknown as GuestBridge
  startCredits(() => host.drain())
  bridge = withCredits(host)
  useEntryClock(host.begin, host.end)
}

function withCredits(host: GuestBridge): GuestBridge {
  return {
    loaded: (report) => host.loaded(report),
    answer: (invocation, head, bodyKind, body) => {
      spendText(head.length + body.length)
      host.answer(invocation, head, bodyKind, body)
    },
    fail: (invocation, failure) => {
      spendText(failure.length)
      host.fail(invocation, failure)
    },
    canceled: (invocation) => host.canceled(invocation),
    startTimer: (invocation, timer, delayMs) => {
      spendCall(0)
      host.startTimer(invocation, timer, delayMs)
    },
    stopTimer: (timer) => {
      spendCall(0)
      host.stopTimer(timer)
    },
    startFetch: (invocation, fetch, head, bodyKind, body) => {
      spendCall(head.length + body.length)
      host.startFetch(invocation, fetch, head, bodyKind, body)
    },
    stopFetch: (fetch) => {
      spendCall(0)
      host.stopFetch(fetch)
    },
    log: (invocation, level, text) => {
      spendCall(text.length)
      host.log(invocation, level, text)
    },
    entropy: () => {
      spendCall(0)
      return host.entropy()
    },
    drain: () => host.drain(),
  }
}
