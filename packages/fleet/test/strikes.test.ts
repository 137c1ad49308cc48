import fc from 'fast-check'
import t from 'tap'
import { standingOf, Strikes, type StrikePolicy } from '../src/health/strikes.ts'

const policy: StrikePolicy = { windowMs: 1_000, quarantineAfter: 2, disableAfter: 4 }
const shared = (...suspects: string[]) => ({ suspects, isCertain: true, wasAlone: false })
const alone = (name: string) => ({ suspects: [name], isCertain: true, wasAlone: true })

t.test('two strikes among others: quarantine; two more by itself: disabled; and they are forgotten', async (t) => {
  const strikes = new Strikes(policy)
  t.equal(strikes.standing('evil', 0), 'free')
  const standings = [shared('evil'), shared('evil'), alone('evil'), alone('evil')].map((blame, index) =>
    strikes.add(blame, index * 10).get('evil'),
  )
  t.strictSame(standings, ['free', 'quarantined', 'quarantined', 'disabled'])
  t.equal(strikes.standing('other', 30), 'free')
  t.equal(strikes.standing('evil', 1_005), 'quarantined', 'the first is forgotten')
  t.equal(strikes.standing('evil', 1_035), 'free')
  strikes.clear('evil')
  t.equal(strikes.count('evil', 30), 0)
})

t.test('what happens in shared processes is never enough to disable anybody', async (t) => {
  const strikes = new Strikes({ ...policy, windowMs: 1e9 })
  for (let atMs = 0; atMs < 100; atMs++) strikes.add(shared('evil'), atMs)
  t.equal(strikes.standing('evil', 100), 'quarantined')
  strikes.add(alone('evil'), 100)
  strikes.add(alone('evil'), 101)
  t.equal(strikes.standing('evil', 101), 'disabled')
})

t.test('shares of one harm add up to one strike; of what may have been nobody to half of one', async (t) => {
  const strikes = new Strikes(policy)
  for (let times = 0; times < 5; times++) strikes.add(shared('a', 'b', 'c'), times)
  t.equal(strikes.standing('a', 5), 'free')
  strikes.add(shared('a', 'b', 'c'), 6)
  t.equal(strikes.standing('a', 6), 'quarantined', 'six thirds are two')
  for (let times = 0; times < 3; times++) strikes.add({ ...shared('d'), isCertain: false }, times)
  t.equal(strikes.standing('d', 3), 'free')
  strikes.add({ ...shared('d'), isCertain: false }, 3)
  t.equal(strikes.standing('d', 3), 'quarantined')
})

t.test('by itself, what may have been nobody was the function', async (t) => {
  const strikes = new Strikes({ ...policy, quarantineAfter: 1, disableAfter: 1 })
  t.equal(strikes.add({ ...alone('evil'), isCertain: false }, 0).get('evil'), 'disabled')
})

t.test('more strikes never make a standing better, time never makes it worse', async () => {
  const strike = fc.record({ atMs: fc.nat(2_000), share: fc.constantFrom(1, 0.5, 1 / 3), wasAlone: fc.boolean() })
  const rank = { free: 0, quarantined: 1, disabled: 2 }
  fc.assert(
    fc.property(fc.array(strike), strike, fc.nat(3_000), fc.nat(1_000), (strikes, more, nowMs, laterMs) => {
      const known = strikes.filter(({ atMs }) => atMs <= nowMs)
      const standing = rank[standingOf(known, nowMs, policy)]
      const isWorse = rank[standingOf([...known, { ...more, atMs: Math.min(more.atMs, nowMs) }], nowMs, policy)] >= standing
      return isWorse && rank[standingOf(known, nowMs + laterMs, policy)] <= standing
    }),
  )
})
