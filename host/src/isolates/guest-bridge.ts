import { randomBytes } from 'node:crypto'
import type { GuestCallback, Primitive, Said } from './guest-isolate.ts'
import { BODY_KINDS, ENTROPY_BYTES, LOG_LEVELS, SAYS, type LoadReport } from '@carpool/runtime/bridge'
import type { Guest, GuestListener } from './guest.ts'
import { LoopWatch } from '../accounting/loop-watch.ts'

/** Ties what an isolate needs before it exists to the guest around it. */
export interface Relay {
  guest: Guest | undefined
  onLoaded: ((report: LoadReport) => void) | undefined
}

const loopWatch = new LoopWatch()

/** What a guest can call, and waits for. */
export function callbacksOf(relay: Relay): Record<'entropy' | 'drain', GuestCallback> {
  const blocked = (answer: () => Primitive) => (): Primitive => {
    const stay = relay.guest?.stay
    if (stay !== undefined) stay.wasHeld = true
    return answer()
  }
  return {
    entropy: blocked(() => randomBytes(ENTROPY_BYTES).toString('latin1')),
    drain: blocked(() => {
      relay.guest?.hear()
      return loopWatch.heldMs()
    }),
  }
}

/** Takes what a guest says to whom it is for. */
export function saidBy(guest: Guest, relay: Relay, listener: GuestListener): Said {
  return (op, a, b, c, text, body) => {
    // What it said before its end, and is heard after that, comes too late. Only its log may count: the invocation may have
    // been begun anew.
    if (guest.isOver && op !== SAYS.log) return
    switch (op) {
      case SAYS.loaded:
        return relay.onLoaded?.(JSON.parse(text) as LoadReport)
      case SAYS.answer:
        return listener.answered(guest, a, text, BODY_KINDS[c] ?? 'none', body)
      case SAYS.fail:
        return listener.failed(guest, a, text)
      case SAYS.canceled:
        return listener.canceled(guest, a)
      case SAYS.startTimer:
        return guest.timers.start(b, c, guest.accountOf(a))
      case SAYS.stopTimer:
        return guest.timers.stop(a)
      case SAYS.startFetch:
        return listener.fetchStarted(guest, a, b, text, BODY_KINDS[c] ?? 'none', body)
      case SAYS.stopFetch:
        return listener.fetchStopped(guest, a)
      case SAYS.log:
        if (guest.logs.take(text)) listener.logged(guest, a, LOG_LEVELS[c] ?? 'info', text)
    }
  }
}
