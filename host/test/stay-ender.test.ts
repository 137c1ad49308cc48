import { KILL_POLICY, resolveLimits } from '@carpool/core'
import { Bootstrap } from '../src/isolates/guest-isolate.ts'
import t, { type Test } from 'tap'
import { EntryGate } from '../src/scheduler/entry-gate.ts'
import { Guest, type GuestListener } from '../src/isolates/guest.ts'
import { LoadFailure } from '../src/isolates/load-failure.ts'
import { LogThrottle } from '../src/calls/log-throttle.ts'
import { Remains } from '../src/isolates/remains.ts'
import type { Stay } from '../src/scheduler/stay.ts'
import { StayEnder } from '../src/scheduler/stay-ender.ts'

/** The least of a runtime: it runs a module scope. */
const BOOT = new Bootstrap(`(function boot() {
  return { load: (options, factory) => factory(), dispatch() {} }
})`)

const REVISION = 'r'

interface Rig {
  readonly guest: Guest
  readonly ender: StayEnder
  readonly remains: Remains
  /** What the process was harmed by. */
  readonly poisoned: string[]
}

/** A guest and its watchdog, as the host has them. */
async function made(t: Test): Promise<Rig> {
  const remains = new Remains()
  const poisoned: string[] = []
  const ender = new StayEnder({
    invocations: { lost: () => t.fail('there are no invocations') },
    remains,
    updateStays: () => {},
    onLost: () => {},
    onRetiring: () => {},
    onPoisoned: (_guest, why) => void poisoned.push(why),
  })
  const logs = new LogThrottle(() => {})
  const none = (): void => {}
  const listener: GuestListener = {
    answered: none,
    failed: none,
    fetchStarted: none,
    fetchStopped: none,
    canceled: none,
    logged: none,
    logsOf: () => logs,
    accountOf: () => undefined,
    stayBegan: none,
    stayEnded: none,
    stayLost: (guest, stay) => {
      ender.lost(guest, stay)
      remains.left(stay)
    },
    entryDelayed: none,
    stayDelayed: none,
    entryRan: none,
    lostAtRest: none,
    gaveUp: none,
    catastrophe: (reason) => t.fail(reason),
    memorySeen: none,
  }
  const guest = await Guest.blank(BOOT, 32, { listener, gate: new EntryGate(1) })
  t.teardown(() => guest.dispose())
  return { guest, ender, remains, poisoned }
}

/** The stay of a guest once it has used more CPU time than its thread may use to come out. */
async function longStay({ guest }: Rig): Promise<Stay> {
  const isLong = (): boolean => guest.usedNs / 1e6 > KILL_POLICY.disposeGraceMs
  while (guest.stay === undefined || !isLong()) await new Promise((resolve) => setImmediate(resolve))
  return guest.stay
}

t.test('a module scope that has looped for long may take as long to come out as any other', async (t) => {
  const rig = await made(t)
  const { guest, ender, remains, poisoned } = rig
  const options = { functionName: 'loops', revision: REVISION, env: {}, limits: resolveLimits({ wallMs: 60_000 }) }
  const loading = guest.load({ source: '(function () { for (;;); })', filename: 'loops.js' }, options)
  const stay = await longStay(rig)
  // As its wall limit does. No event is heard of between here and the last look, so its thread is in for all that the host knows.
  guest.endLoad(new LoadFailure('The module scope did not finish.', { outcome: 'timeout' }))
  let failure: unknown
  await loading.catch((cause: unknown) => (failure = cause))
  t.match(failure, { outcome: 'timeout' })
  ender.look(guest, stay)
  ender.look(guest, stay)
  t.ok(guest.disposed && guest.stay === stay, 'the isolate is disposed, and its thread was not seen to come out')
  t.strictSame(poisoned, [], 'what it used before does not tell against it')
  let may: boolean | undefined
  const asked = remains.mayBegin(REVISION).then((answer) => (may = answer))
  await new Promise((resolve) => process.nextTick(resolve))
  t.equal(may, undefined, 'until then nothing of the revision begins')
  t.equal(await asked, true)
})
