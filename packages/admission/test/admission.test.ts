import fc from 'fast-check'
import type { FunctionLimits } from '@carpool/core'
import t from 'tap'
import { routedCall } from '../../../test/support/call.ts'
import { Admission } from '../src/index.ts'

interface Permit {
  release(): void
}

function call(functionName: string, owner = 'ann', limits: Partial<FunctionLimits> = {}) {
  return routedCall(functionName, { owner, limits })
}

type Asking = ReturnType<typeof call>

/** Admits one more call like the given one. */
function admit(admission: Admission, { functionName, revision }: Asking): Permit {
  const admitted = call(functionName, revision.owner, revision.limits)
  admission.admit(admitted)
  return { release: () => admission.release(admitted) }
}

t.test('a function at its own limit is refused, and others are not', async (t) => {
  const admission = new Admission({ maxInFlight: 100 })
  const busy = call('busy', 'ann', { concurrency: 2 })
  const [first] = [admit(admission, busy), admit(admission, busy)]
  t.throws(() => admit(admission, busy), { code: 'too-many-requests', message: /^busy .*2/ })
  t.doesNotThrow(() => admit(admission, call('calm')))
  first?.release()
  t.doesNotThrow(() => admit(admission, busy))
})

t.test('an owner at the common limit of its functions is refused, and others are not', async (t) => {
  const admission = new Admission({ maxInFlight: 100, maxPerOwner: 2 })
  const [first] = [admit(admission, call('a')), admit(admission, call('b'))]
  t.throws(() => admit(admission, call('c')), { code: 'too-many-requests', message: /owner of c .*2/ })
  t.doesNotThrow(() => admit(admission, call('d', 'bob')))
  first?.release()
  t.doesNotThrow(() => admit(admission, call('c')))
})

t.test('the server has a limit over all functions and owners', async (t) => {
  const admission = new Admission({ maxInFlight: 1, maxPerOwner: 5 })
  const permit = admit(admission, call('a'))
  t.throws(() => admit(admission, call('b', 'bob')), { code: 'saturated', message: /1/ })
  permit.release()
  t.equal(admission.inFlight, 0)
})

t.test('what cannot be recorded is not run', async (t) => {
  let unavailable: string | undefined = 'disk full'
  const admission = new Admission({ maxInFlight: 1, ledgerUnavailable: () => unavailable })
  t.throws(() => admit(admission, call('a')), { code: 'ledger-unavailable' })
  unavailable = undefined
  t.doesNotThrow(() => admit(admission, call('a')))
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
          const admitted = admit(admission, call(name, owner, { concurrency: 8 }))
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
