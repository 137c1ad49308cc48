import type { Test } from 'tap'
import { Guest, type EnteredCalls } from '../../src/isolates/guest.ts'
import type { Bootstrap } from '../../src/isolates/guest-isolate.ts'
import { LogThrottles } from '../../src/limits/log-throttle.ts'
import { DisposingIsolates, Watchdog } from '../../src/limits/watchdog.ts'
import { RunScheduler } from '../../src/scheduler/run-scheduler.ts'

export interface GuestRig {
  readonly guest: Guest
  readonly watchdog: Watchdog
  readonly disposing: DisposingIsolates
  /** What the process was harmed by. */
  readonly poisoned: string[]
  /** How isolates were lost. */
  readonly lost: string[]
}

/** A guest and its watchdog, as the host has them. */
export async function guestWith(t: Test, bootstrap: Bootstrap, memoryLimitMb = 32): Promise<GuestRig> {
  const disposing = new DisposingIsolates()
  const poisoned: string[] = []
  const lost: string[] = []
  const none = (): void => {}
  const scheduler = new RunScheduler<Guest>({ permits: 1, longBatches: 1, firstSliceMs: 60_000, onLong: none, onCheck: none })
  const watchdog = new Watchdog({
    invocations: { isolateLost: (_guest, _culprit, outcome) => void lost.push(outcome) },
    disposing,
    scheduler,
    pool: { setAside: () => false },
    onDisposed: none,
    onPoisoned: (_guest, why) => void poisoned.push(why),
  })
  const calls: EnteredCalls = {
    answered: none,
    headAnswered: none,
    answerEnded: none,
    failed: none,
    fetchStarted: none,
    fetchStopped: none,
    socketOpened: none,
    socketUsed: none,
    tlsStarted: none,
    socketStopped: none,
    canceled: none,
    logged: none,
    accountOf: () => undefined,
    entryRan: none,
    endOverCpuLimit: none,
  }
  const onCatastrophe = (reason: string): void => void t.fail(reason)
  const guest = await Guest.blank(
    { bootstrap, memoryLimitMb },
    { calls, watchdog, scheduler, logs: new LogThrottles(none), onGrown: none, onCatastrophe },
  )
  t.teardown(() => guest.dispose())
  return { guest, watchdog, disposing, poisoned, lost }
}
