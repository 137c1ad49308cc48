import fc from 'fast-check'
import { resolveLimits } from '@carpool/core'
import t from 'tap'
import { Admission, type Permit } from '../src/index.ts'

t.test('a function at its own limit is refused, and others are not', async (t) => {
  const admission = new Admission({ maxInFlight: 100 })
  const limits = resolveLimits({ concurrency: 2 })
  const [first] = [admission.admit('busy', limits), admission.admit('busy', limits)]
  t.throws(() => admission.admit('busy', limits), { code: 'too-many-requests', message: /busy.*2/ })
  t.doesNotThrow(() => admission.admit('calm', limits))
  first?.release()
  t.doesNotThrow(() => admission.admit('busy', limits))
})

t.test('the server has a limit over all functions', async (t) => {
  const admission = new Admission({ maxInFlight: 1 })
  const permit = admission.admit('a', resolveLimits({}))
  t.throws(() => admission.admit('b', resolveLimits({})), { code: 'saturated', message: /1/ })
  permit.release()
  t.equal(admission.inFlight, 0)
})

t.test('whatever the order of releases, also repeated ones, counts never drift', async () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(30), fc.boolean()), { maxLength: 200 }), (steps) => {
      const admission = new Admission({ maxInFlight: 20 })
      const limits = resolveLimits({ concurrency: 8 })
      const given: Permit[] = []
      const held = new Set<Permit>()
      for (const [name, index, isRelease] of steps) {
        const permit = given[index]
        if (isRelease && permit !== undefined) {
          permit.release()
          held.delete(permit)
          continue
        }
        try {
          const admitted = admission.admit(name, limits)
          given.push(admitted)
          held.add(admitted)
        } catch {}
        if (admission.inFlight !== held.size || held.size > 20) return false
      }
      for (const permit of held) permit.release()
      return admission.inFlight === 0
    }),
  )
})
