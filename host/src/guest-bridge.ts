import { randomBytes } from 'node:crypto'
import type { LogLevel } from '@carpool/core'
import type { GuestCallback, Primitive } from '@carpool/isolate'
import { ENTROPY_BYTES, type BodyKind, type GuestBridge, type LoadReport } from '@carpool/runtime/bridge'
import type { Guest, GuestListener } from './guest.ts'
import { LoopWatch } from './loop-watch.ts'

/** Ties the callbacks, which an isolate needs before it exists, to the guest around it. */
export interface Relay {
  guest: Guest | undefined
  onLoaded: ((report: LoadReport) => void) | undefined
}

const loopWatch = new LoopWatch()

/** What a guest can call. */
export function bridgeOf(
  relay: Relay,
  listener: GuestListener,
): Record<Exclude<keyof GuestBridge, 'begin' | 'end'>, GuestCallback> {
  const relayed = (call: (guest: Guest, ...args: never[]) => void, keepsAfterEnd = false): GuestCallback => ({
    blocking: false,
    call: (...args) => {
      const { guest } = relay
      // What a guest has queued before its end comes after it. Of that only its log may count: the invocation may have been begun anew.
      if (guest !== undefined && (keepsAfterEnd || !guest.disposed)) call(guest, ...args)
      return undefined
    },
  })
  const blocked = (answer: () => Primitive): GuestCallback => ({
    blocking: true,
    call: () => {
      const stay = relay.guest?.stay
      if (stay !== undefined) stay.wasHeld = true
      return answer()
    },
  })
  return {
    loaded: relayed((_guest, report: string) => relay.onLoaded?.(JSON.parse(report) as LoadReport)),
    answer: relayed((guest, invocation: number, head: string, kind: BodyKind, body: string) =>
      listener.answered(guest, invocation, head, kind, body),
    ),
    fail: relayed((guest, invocation: number, failure: string) => listener.failed(guest, invocation, failure)),
    canceled: relayed((guest, invocation: number) => listener.canceled(guest, invocation)),
    startTimer: relayed((guest, invocation: number, timer: number, delayMs: number) => {
      const account = guest.accountOf(invocation)
      guest.stay?.reached(account)
      guest.timers.start(timer, delayMs, account)
    }),
    stopTimer: relayed((guest, timer: number) => guest.timers.stop(timer)),
    startFetch: relayed((guest, invocation: number, fetch: number, head: string, kind: BodyKind, body: string) => {
      listener.fetchStarted(guest, invocation, fetch, head, kind, body)
    }),
    stopFetch: relayed((guest, fetch: number) => listener.fetchStopped(guest, fetch)),
    log: relayed((guest, invocation: number, level: LogLevel, text: string) => {
      if (guest.logs.take(text)) listener.logged(guest, invocation, level, text)
    }, true),
    entropy: blocked(() => randomBytes(ENTROPY_BYTES).toString('latin1')),
    drain: blocked(() => loopWatch.heldMs()),
  }
}
