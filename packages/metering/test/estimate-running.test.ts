import fc from 'fast-check'
import t from 'tap'
import { estimateRunning } from '../src/index.ts'

const milliseconds = fc.double({ min: -50, max: 10_000, noNaN: true })
const stays = fc.array(
  milliseconds.map((ranMs) => ({ ranMs })),
  { maxLength: 20, size: 'max' },
)

/** Sums of fractions are as exact as that. */
const EPSILON_MS = 1e-6

t.test('nobody gets less than nothing or more than it ran', async () => {
  fc.assert(
    fc.property(milliseconds, stays, (unclaimedMs, stays) => {
      const shares = estimateRunning(unclaimedMs, stays)
      return (
        shares.length === stays.length &&
        shares.every((share, index) => share >= 0 && share <= Math.max(0, stays[index]?.ranMs ?? 0))
      )
    }),
  )
})

t.test('no more is given than is there, and no less than there is room for', async () => {
  fc.assert(
    fc.property(milliseconds, stays, (unclaimedMs, stays) => {
      const given = estimateRunning(unclaimedMs, stays).reduce((sum, share) => sum + share, 0)
      const room = stays.reduce((sum, { ranMs }) => sum + Math.max(0, ranMs), 0)
      return Math.abs(given - Math.min(Math.max(0, unclaimedMs), room)) <= EPSILON_MS
    }),
  )
})

t.test('those that had room all get the same, which is the most that anybody gets and no less than an even share', async () => {
  fc.assert(
    fc.property(milliseconds, stays, (unclaimedMs, stays) => {
      const shares = estimateRunning(unclaimedMs, stays)
      const evenMs = Math.max(0, unclaimedMs) / stays.length
      const most = Math.max(0, ...shares)
      return shares.every((share, index) => {
        const hadRoom = share < Math.max(0, stays[index]?.ranMs ?? 0) - EPSILON_MS
        return !hadRoom || (share >= evenMs - EPSILON_MS && share >= most - EPSILON_MS)
      })
    }),
  )
})

t.test('what one that began late cannot take is for the others', async (t) => {
  t.strictSame(estimateRunning(10, [{ ranMs: 10 }, { ranMs: 2 }]), [8, 2])
  t.strictSame(estimateRunning(10, [{ ranMs: 1 }, { ranMs: 10 }, { ranMs: 10 }]), [1, 4.5, 4.5])
  t.strictSame(estimateRunning(20, [{ ranMs: 10 }]), [10])
  t.strictSame(estimateRunning(-3, [{ ranMs: 10 }]), [0])
  t.strictSame(estimateRunning(10, []), [])
})
