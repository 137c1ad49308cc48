import fc from 'fast-check'
import t from 'tap'
import { FailedAttempts } from '../src/index.ts'

t.test('a source may fail so often at once, and then as often as failures are forgotten', async (t) => {
  let nowMs = 0
  const attempts = new FailedAttempts({ clock: () => nowMs, burst: 3, forgetMs: 1_000 })
  t.strictSame(
    [1, 2, 3, 4, 5].map(() => attempts.add('a')),
    ['counted', 'counted', 'last', 'too-many', 'too-many'],
  )
  t.equal(attempts.waitMs('a'), 1_000)
  t.equal(attempts.waitMs('b'), 0)
  t.equal(attempts.add('b'), 'counted', 'others have a count of their own')
  nowMs = 999
  t.equal(attempts.add('a'), 'too-many')
  t.equal(attempts.waitMs('a'), 1)
  nowMs = 1_000
  t.equal(attempts.waitMs('a'), 0)
  t.equal(attempts.add('a'), 'last')
  t.equal(attempts.add('a'), 'too-many')
  nowMs = 10_000
  t.strictSame(
    [1, 2, 3, 4].map(() => attempts.add('a')),
    ['counted', 'counted', 'last', 'too-many'],
  )
})

t.test('the sources that failed longest ago are forgotten', async (t) => {
  const attempts = new FailedAttempts({ clock: () => 0, burst: 1, maxSources: 2 })
  for (const source of ['a', 'b', 'c']) attempts.add(source)
  t.equal(attempts.add('b'), 'too-many')
  t.equal(attempts.add('c'), 'too-many')
  t.equal(attempts.add('a'), 'last')
})

t.test('never more than the burst and what was forgotten since is taken', async () => {
  fc.assert(
    fc.property(fc.array(fc.nat(2_000), { maxLength: 200 }), fc.integer({ min: 1, max: 5 }), (pausesMs, burst) => {
      let nowMs = 0
      const attempts = new FailedAttempts({ clock: () => nowMs, burst, forgetMs: 1_000 })
      let taken = 0
      return pausesMs.every((pauseMs) => {
        nowMs += pauseMs
        const waits = attempts.waitMs('a') > 0
        const result = attempts.add('a')
        if (result !== 'too-many') taken += 1
        return waits === (result === 'too-many') && taken <= burst + nowMs / 1_000
      })
    }),
  )
})
