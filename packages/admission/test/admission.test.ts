import fc from 'fast-check'
import { resolveLimits, type FunctionLimits } from '@carpool/core'
import t from 'tap'
import { Admission, type Permit } from '../src/index.ts'

function call(functionName: string, owner = 'ann', limits: Partial<FunctionLimits> = {}) {
  return { functionName, owner, limits: resolveLimits(limits) }
}

t.test('a function at its own limit is refused, and others are not', async (t) => {
  const admission = new Admission({ maxInFlight: 100 })
  const busy = call('busy', 'ann', { concurrency: 2 })
  const [first] = [admission.admit(busy), admission.admit(busy)]
  t.throws(() => admission.admit(busy), { code: 'too-many-requests', message: /^busy .*2/ })
  t.doesNotThrow(() => admission.admit(call('calm')))
  first?.release()
  t.doesNotThrow(() => admission.admit(busy))
})

t.test('an owner at the common limit of its functions is refused, and others are not', async (t) => {
  const admission = new Admission({ maxInFlight: 100, maxPerOwner: 2 })
  const [first] = [admission.admit(call('a')), admission.admit(call('b'))]
  t.throws(() => admission.admit(call('c')), { code: 'too-many-requests', message: /owner of c .*2/ })
  t.doesNotThrow(() => admission.admit(call('d', 'bob')))
  first?.release()
  t.doesNotThrow(() => admission.admit(call('c')))
})

t.test('the server has a limit over all functions and owners', async (t) => {
  const admission = new Admission({ maxInFlight: 1, maxPerOwner: 5 })
  const permit = admission.admit(call('a'))
  t.throws(() => admission.admit(call('b', 'bob')), { code: 'saturated', message: /1/ })
  permit.release()
  t.equal(admission.inFlight, 0)
})

t.test('what cannot be recorded is not run', async (t) => {
  let unavailable: string | undefined = 'disk full'
  const admission = new Admission({ maxInFlight: 1, ledgerUnavailable: () => unavailable })
  t.throws(() => admission.admit(call('a')), { code: 'ledger-unavailable' })
  unavailable = undefined
  t.doesNotThrow(() => admission.admit(call('a')))
})

t.test('whatever the order of releases, also repeated ones, counts never drift', async () => {
  const step = fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('ann', 'bob'), fc.nat(15), fc.boolean())
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const admission = new Admission({ maxInFlight: 20, maxPerOwner: 12 })
      const given: Permit[] = []
      const held = new Map<Permit, { name: string; owner: string }>()
      for (const [name, owner, index, isRelease] of steps) {
        const permit = given[index]
        if (isRelease && permit !== undefined) {
          permit.release()
          held.delete(permit)
          if (admission.inFlight !== held.size) return false
          continue
        }
        const ofName = [...held.values()].filter((other) => other.name === name).length
        const ofOwner = [...held.values()].filter((other) => other.owner === owner).length
        const fits = ofName < 8 && ofOwner < 12 && held.size < 20
        try {
          const admitted = admission.admit(call(name, owner, { concurrency: 8 }))
          given.push(admitted)
          held.set(admitted, { name, owner })
          if (!fits) return false
        } catch {
          if (fits) return false
        }
        if (admission.inFlight !== held.size) return false
      }
      for (const permit of held.keys()) permit.release()
      return admission.inFlight === 0
    }),
  )
})
