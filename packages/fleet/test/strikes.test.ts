import fc from 'fast-check'
import t from 'tap'
import { strikeLevelOf, Strikes, type StrikePolicy } from '../src/health/strikes.ts'
import { HostSuspects, suspectsOf } from '../src/health/suspects.ts'
import { isCrash } from '../src/pool/os-process.ts'

const policy: StrikePolicy = { windowMs: 1_000, quarantineAfter: 2, disableAfter: 4 }
const shared = (...suspects: string[]) => ({ suspects, isCertain: true, wasAlone: false })
const alone = (name: string) => ({ suspects: [name], isCertain: true, wasAlone: true })

t.test('two strikes among others: quarantine; two more by itself: disabled; and they are forgotten', async (t) => {
  const strikes = new Strikes(policy, () => 'o')
  t.equal(strikes.level('evil', 0), 'free')
  const levels = [shared('evil'), shared('evil'), alone('evil'), alone('evil')].map((harm, index) =>
    strikes.add(harm, index * 10).get('evil'),
  )
  t.strictSame(levels, ['free', 'quarantined', 'quarantined', 'disabled'])
  t.equal(strikes.level('other', 30), 'free')
  t.equal(strikes.level('evil', 1_005), 'quarantined', 'the first is forgotten')
  t.equal(strikes.level('evil', 1_035), 'free')
  strikes.clear('evil')
  t.equal(strikes.count('evil', 30), 0)
})

t.test('what happens in shared processes is never enough to disable anybody', async (t) => {
  const strikes = new Strikes({ ...policy, windowMs: 1e9 }, () => 'o')
  for (let atMs = 0; atMs < 100; atMs++) strikes.add(shared('evil'), atMs)
  t.equal(strikes.level('evil', 100), 'quarantined')
  strikes.add(alone('evil'), 100)
  strikes.add(alone('evil'), 101)
  t.equal(strikes.level('evil', 101), 'disabled')
})

t.test('shares of one harm add up to one strike; of what may have been nobody to half of one', async (t) => {
  const strikes = new Strikes(policy, () => 'o')
  for (let times = 0; times < 5; times++) strikes.add(shared('a', 'b', 'c'), times)
  t.equal(strikes.level('a', 5), 'free')
  strikes.add(shared('a', 'b', 'c'), 6)
  t.equal(strikes.level('a', 6), 'quarantined', 'six thirds are two')
  for (let times = 0; times < 3; times++) strikes.add({ ...shared('d'), isCertain: false }, times)
  t.equal(strikes.level('d', 3), 'free')
  strikes.add({ ...shared('d'), isCertain: false }, 3)
  t.equal(strikes.level('d', 3), 'quarantined')
})

t.test('by itself, what may have been nobody was the function', async (t) => {
  const strikes = new Strikes({ ...policy, quarantineAfter: 1, disableAfter: 1 }, () => 'o')
  t.equal(strikes.add({ ...alone('evil'), isCertain: false }, 0).get('evil'), 'disabled')
})

t.test('a name that somebody else gets begins without strikes; a new revision of the same owner does not', async (t) => {
  let owner = 'former'
  const strikes = new Strikes(policy, () => owner)
  for (const atMs of [0, 1]) strikes.add(shared('evil'), atMs)
  strikes.clearIfOwnerChanged('evil', 'former')
  t.equal(strikes.level('evil', 2), 'quarantined')
  owner = 'present'
  strikes.clearIfOwnerChanged('evil', 'present')
  t.equal(strikes.level('evil', 2), 'free')
})

t.test('more strikes never make a level better, time never makes it worse', async () => {
  const strike = fc.record({ atMs: fc.nat(2_000), share: fc.constantFrom(1, 0.5, 1 / 3), wasAlone: fc.boolean() })
  const rank = { free: 0, quarantined: 1, disabled: 2 }
  fc.assert(
    fc.property(fc.array(strike), strike, fc.nat(3_000), fc.nat(1_000), (strikes, more, nowMs, laterMs) => {
      const known = strikes.filter(({ atMs }) => atMs <= nowMs)
      const level = rank[strikeLevelOf(known, nowMs, policy)]
      const isWorse = rank[strikeLevelOf([...known, { ...more, atMs: Math.min(more.atMs, nowMs) }], nowMs, policy)] >= level
      return isWorse && rank[strikeLevelOf(known, nowMs + laterMs, policy)] <= level
    }),
  )
})

t.test('a crash is what code does to its process, not what others do to it', async (t) => {
  for (const signal of ['SIGSEGV', 'SIGABRT', 'SIGILL', 'SIGTRAP', 'SIGBUS', 'SIGFPE'] as const) {
    t.ok(isCrash({ exitCode: null, signal }), signal)
  }
  for (const exitCode of [132, 133, 134, 135, 136, 139]) t.ok(isCrash({ exitCode, signal: null }), `exit code ${exitCode}`)
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGINT'] as const) t.notOk(isCrash({ exitCode: null, signal }), signal)
  for (const exitCode of [0, 1, 137, 143]) t.notOk(isCrash({ exitCode, signal: null }), `exit code ${exitCode}`)
})

t.test('suspects: those in long entries; else those that ran; nobody if it was no crash', async (t) => {
  const crash = { exitCode: null, signal: 'SIGSEGV' } as const
  t.strictSame(suspectsOf(crash, { inLongEntries: ['evil'], running: ['evil', 'near'], takers: ['big'] }), ['evil'])
  t.strictSame(suspectsOf(crash, { inLongEntries: [], running: ['evil', 'near'], takers: ['big'] }), ['evil', 'near'])
  const known = { inLongEntries: ['evil'], running: ['evil'], takers: ['big'] }
  t.strictSame(suspectsOf({ exitCode: null, signal: 'SIGKILL' }, known), [])
})

t.test('where memory has run out, suspects are those that have just taken much, and hold much of it', async (t) => {
  const killed = { exitCode: null, signal: 'SIGKILL', isOutOfMemory: true } as const
  const suspects = new HostSuspects(100e6)
  const suspected = (nowMs: number): string[] =>
    suspectsOf(killed, { inLongEntries: ['long'], running: ['long', 'near'], takers: suspects.takers(nowMs) })
  t.strictSame(suspected(0), [], 'nobody is, of whom nothing is known')
  suspects.grown('small', 30e6, 0)
  t.strictSame(suspected(1_000), ['small'])
  for (const bytes of [20e6, 200e6]) suspects.grown('evil', bytes, 500)
  suspects.grown('as evil', 150e6, 500)
  t.strictSame(suspected(1_000), ['evil', 'as evil'], 'who holds less than half as much is not')
  suspects.grown('small', 30e6, 2_800)
  t.strictSame(suspected(2_900), ['small'], 'nor who has not taken any for a while')
  suspects.grown('small', 24e6, 2_800)
  t.strictSame(suspected(2_900), [], 'nobody is who holds less than a quarter of what the host may')
})

t.test('a function gets one strike for each process, however often it harms it', async (t) => {
  const suspects = new HostSuspects(0)
  t.same(suspects.attribute(['a', 'b']), ['a', 'b'])
  t.same(suspects.attribute(['b', 'c']), ['c'])
})

t.test('once V8 has given up on an isolate, nobody else is to blame for a process that stops', async (t) => {
  const suspects = new HostSuspects(0)
  t.strictSame(suspects.stopped(['a', 'b', 'a']), ['a', 'b'])
  suspects.gaveUp()
  t.strictSame(suspects.stopped(['a', 'b']), [])
})

t.test('a function is in a long entry until as many have ended as have begun', async (t) => {
  const suspects = new HostSuspects(0)
  for (const change of [1, 1, -1] as const) suspects.longEntry('a', change)
  t.same([...suspects.inLongEntries], ['a'])
  for (const change of [-1, -1] as const) suspects.longEntry('a', change)
  t.same([...suspects.inLongEntries], [])
})
