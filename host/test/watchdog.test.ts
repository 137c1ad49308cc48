import { KILL_POLICY, resolveLimits } from '@carpool/core'
import t from 'tap'
import { Account } from '../src/accounting/account.ts'
import { LoadFailure } from '../src/isolates/code-store.ts'
import { Bootstrap } from '../src/isolates/guest-isolate.ts'
import { DisposingIsolates } from '../src/limits/watchdog.ts'
import { Batch } from '../src/scheduler/batch.ts'
import { guestWith, type GuestRig } from './support/guest.ts'

/** The least of a runtime: it runs a module scope. */
const BOOT = new Bootstrap(`(function boot() {
  return { load: (options, factory) => factory(), dispatch() {}, rejected() {} }
})`)

const REVISION = 'r'

/** The batch of a guest once it has used more CPU time than its thread may use to leave the isolate. */
async function longBatch({ guest }: GuestRig): Promise<Batch> {
  const isLong = (): boolean => guest.usedNs / 1e6 > KILL_POLICY.disposeGraceMs
  while (guest.batch === undefined || !isLong()) await new Promise((resolve) => setImmediate(resolve))
  return guest.batch
}

t.test('a module scope that has looped for long may take as long to come out as any other', async (t) => {
  const rig = await guestWith(t, BOOT)
  const { guest, watchdog, disposing, poisoned } = rig
  const options = { functionName: 'loops', revision: REVISION, env: {}, limits: resolveLimits({ wallMs: 60_000 }) }
  const loading = guest.load({ source: '(function () { for (;;); })', filename: 'loops.js' }, options, 'o')
  const batch = await longBatch(rig)
  // As its wall limit does. No event is seen between here and the last check, so its thread is in for all that the host knows.
  guest.endLoad(new LoadFailure('The module scope did not finish.', { outcome: 'timeout' }))
  let failure: unknown
  await loading.catch((cause: unknown) => (failure = cause))
  t.match(failure, { outcome: 'timeout' })
  watchdog.check(guest, batch)
  watchdog.check(guest, batch)
  t.ok(guest.disposed && guest.batch === batch, 'the isolate is disposed, and its thread was not seen to leave it')
  t.strictSame(poisoned, [], 'what it used before does not tell against it')
  let may: boolean | undefined
  const asked = disposing.mayLoad(REVISION).then((answer) => (may = answer))
  await new Promise((resolve) => process.nextTick(resolve))
  t.equal(may, undefined, 'until then nothing of the revision begins')
  t.equal(await asked, true)
})

t.test('where V8 gives an isolate up outside of a batch, it is lost, and the process is harmed', async (t) => {
  const { guest, watchdog, disposing, poisoned, lost } = await guestWith(t, BOOT)
  const options = { functionName: 'parks', revision: REVISION, env: {}, limits: resolveLimits({}) }
  const loading = guest.load({ source: '(function () { for (;;); })', filename: 'parks.js' }, options, 'o').catch(() => {})
  while (guest.batch === undefined) await new Promise((resolve) => setImmediate(resolve))
  guest.endLoad(new LoadFailure('The module scope did not finish.', { outcome: 'timeout' }))
  await loading
  while (guest.batch !== undefined) await new Promise((resolve) => setImmediate(resolve))
  watchdog.gaveUp(guest)
  t.strictSame(poisoned, ['gave-up'])
  t.equal(await disposing.mayLoad(REVISION), false)
  t.strictSame(lost, [], 'what it held was lost before')
})

const batch = (): Batch => new Batch([new Account()], 0)

t.test('a revision begins anew when the threads of its isolates have come out, and not before', async (t) => {
  const disposing = new DisposingIsolates()
  t.equal(await disposing.mayLoad('r'), true, 'nothing remains')
  const [one, two] = [batch(), batch()]
  disposing.add('r', one)
  disposing.add('r', two)
  let answer: boolean | undefined
  const asked = disposing.mayLoad('r').then((may) => (answer = may))
  t.equal(await disposing.mayLoad('other'), true)
  disposing.left(one)
  await new Promise(setImmediate)
  t.equal(answer, undefined, 'one is still in')
  disposing.left(two)
  t.equal(await asked, true)
})

t.test('where a thread is stuck, its revision never begins again, nor do those that wait for it', async (t) => {
  const disposing = new DisposingIsolates()
  const one = batch()
  disposing.add('r', one)
  const asked = disposing.mayLoad('r')
  disposing.stuck('r', one)
  t.equal(await asked, false)
  disposing.left(one)
  t.equal(await disposing.mayLoad('r'), false)
  t.equal(await disposing.mayLoad('other'), true)
})
