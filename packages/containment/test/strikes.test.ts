import fc from 'fast-check'
import t from 'tap'
import { standingOf, Strikes, type StrikePolicy } from '../src/index.ts'

const policy: StrikePolicy = { windowMs: 1_000, quarantineAfter: 2, disableAfter: 4 }

t.test('two strikes: quarantine; four: disabled; and they are forgotten', async (t) => {
  const strikes = new Strikes(policy)
  t.equal(strikes.standing('evil', 0), 'free')
  const standings = [0, 10, 20, 30].map((atMs) => strikes.add(['evil'], atMs).get('evil'))
  t.strictSame(standings, ['free', 'quarantined', 'quarantined', 'disabled'])
  t.equal(strikes.standing('other', 30), 'free')
  t.equal(strikes.standing('evil', 1_005), 'quarantined', 'the first is forgotten')
  t.equal(strikes.standing('evil', 1_025), 'free')
  strikes.clear('evil')
  t.equal(strikes.count('evil', 30), 0)
})

t.test('who was only near is put aside at most, never disabled', async (t) => {
  const strikes = new Strikes({ ...policy, windowMs: 1e9 })
  for (let atMs = 0; atMs < 100; atMs++) strikes.add(['evil', 'near'], atMs)
  t.equal(strikes.standing('near', 100), 'quarantined')
  t.equal(strikes.standing('evil', 100), 'quarantined')
  // By itself it shows who it was.
  for (let atMs = 100; atMs < 104; atMs++) strikes.add(['evil'], atMs)
  t.equal(strikes.standing('evil', 104), 'disabled')
  t.equal(strikes.standing('near', 104), 'quarantined')
})

t.test('what is not certain never disables, though there is one suspect', async (t) => {
  const strikes = new Strikes({ ...policy, windowMs: 1e9 })
  for (let atMs = 0; atMs < 100; atMs++) strikes.add(['stopped'], atMs, false)
  t.equal(strikes.standing('stopped', 100), 'quarantined')
})

t.test('shares of one harm add up to one strike', async (t) => {
  const strikes = new Strikes(policy)
  const three = ['a', 'b', 'c']
  for (let times = 0; times < 5; times++) strikes.add(three, times)
  t.equal(strikes.standing('a', 5), 'free')
  strikes.add(three, 6)
  t.equal(strikes.standing('a', 6), 'quarantined', 'six thirds are two')
})

t.test('more strikes never make a standing better, time never makes it worse', async () => {
  const strike = fc.record({ atMs: fc.nat(2_000), share: fc.constantFrom(1, 0.5, 1 / 3) })
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
