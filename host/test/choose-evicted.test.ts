import fc from 'fast-check'
import t from 'tap'
import { chooseEvicted, type EvictionCandidate } from '../src/isolates/choose-evicted.ts'

const candidates: fc.Arbitrary<EvictionCandidate[]> = fc.array(
  fc.record({
    leases: fc.constantFrom(0, 0, 0, 1, 3),
    isPinned: fc.constantFrom(false, false, true),
    hasBackgroundWork: fc.boolean(),
    heapBytes: fc.nat(100),
  }),
  { maxLength: 30 },
)
const goals = fc.record({ isolates: fc.nat(20), bytes: fc.nat(1000) })

const bytesOf = (chosen: readonly EvictionCandidate[]): number => chosen.reduce((sum, { heapBytes }) => sum + heapBytes, 0)

t.test('one that is in use or pinned never leaves, and none leaves twice', async () => {
  fc.assert(
    fc.property(candidates, goals, (candidates, goal) => {
      const chosen = chooseEvicted(candidates, goal)
      return (
        chosen.every((one) => candidates.includes(one) && one.leases === 0 && !one.isPinned) &&
        new Set(chosen).size === chosen.length
      )
    }),
  )
})

t.test('the goal is reached, by the last that leaves and not before, or all leave that may', async () => {
  fc.assert(
    fc.property(candidates, goals, (candidates, goal) => {
      const chosen = chooseEvicted(candidates, goal)
      const isReachedBy = (some: readonly EvictionCandidate[]): boolean =>
        some.length >= goal.isolates && bytesOf(some) >= goal.bytes
      const mayLeave = candidates.filter(({ leases, isPinned }) => leases === 0 && !isPinned)
      const isLeast = chosen.length === 0 || !isReachedBy(chosen.slice(0, -1))
      return isLeast && (isReachedBy(chosen) || chosen.length === mayLeave.length)
    }),
  )
})

t.test('they leave in order of use, those with background work after all without', async () => {
  fc.assert(
    fc.property(candidates, goals, (candidates, goal) => {
      const mayLeave = candidates.filter(({ leases, isPinned }) => leases === 0 && !isPinned)
      const order = [
        ...mayLeave.filter(({ hasBackgroundWork }) => !hasBackgroundWork),
        ...mayLeave.filter(({ hasBackgroundWork }) => hasBackgroundWork),
      ]
      return chooseEvicted(candidates, goal).every((one, index) => one === order[index])
    }),
  )
})

t.test('without a goal nothing leaves', async (t) => {
  const idle = { leases: 0, isPinned: false, hasBackgroundWork: false, heapBytes: 1 }
  t.strictSame(chooseEvicted([idle], {}), [])
  t.strictSame(chooseEvicted([idle], { isolates: -1, bytes: -1 }), [])
  t.strictSame(chooseEvicted([idle, idle], { isolates: 1 }), [idle])
  t.strictSame(chooseEvicted([], { isolates: 1, bytes: 1 }), [])
})
