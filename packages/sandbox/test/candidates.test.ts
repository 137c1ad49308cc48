import fc from 'fast-check'
import t from 'tap'
import { usesBubblewrap } from '../src/cage-plan.ts'
import { candidates } from '../src/candidates.ts'
import { LAYER_NAMES } from '../src/layers.ts'
import { planOf } from './support/plan.ts'

t.test('the first is the best, the last has what every machine has, and none is tried twice', async () => {
  fc.assert(
    fc.property(fc.subarray([...LAYER_NAMES]), (wanted) => {
      const best = planOf(wanted)
      const plans = candidates(best)
      const last = plans.at(-1)!
      const keys = plans.map((plan) => [...plan.wanted].join() + String(plan.ownProc))
      return (
        [...plans[0]!.wanted].join() === wanted.join() &&
        plans[0]!.ownProc &&
        !usesBubblewrap(last) &&
        !last.wanted.has('user') &&
        !last.wanted.has('no-new-privileges') &&
        new Set(keys).size === keys.length &&
        plans.every((plan) => [...plan.wanted].every((name) => best.wanted.has(name)))
      )
    }),
  )
})

t.test('a user of its own is given up last', async (t) => {
  const plans = candidates(planOf(LAYER_NAMES))
  const firstWithout = plans.findIndex(({ wanted }) => !wanted.has('user'))
  t.ok(plans.slice(0, firstWithout).some((plan) => !usesBubblewrap(plan)))
  t.ok(plans.slice(firstWithout).every(({ wanted }) => !wanted.has('user')))
})
