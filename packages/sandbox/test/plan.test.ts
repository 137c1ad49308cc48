import fc from 'fast-check'
import t from 'tap'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES } from '../src/layers.ts'
import { fallbackPlan, usesBubblewrap, type SandboxPlan } from '../src/plan.ts'
import { planOf } from './support/plan.ts'

const NO_PROC = "bwrap: Can't mount proc on /newroot/proc: Operation not permitted"
const NO_SECCOMP = 'bwrap: prctl(PR_SET_SECCOMP): Invalid argument'
const NO_NAMESPACES = 'bwrap: Creating new namespace failed: Operation not permitted'

/** A plan and all that it falls back to where each fails with the next of these errors, or the last of them. */
function plans(best: SandboxPlan, errors: readonly string[]): readonly SandboxPlan[] {
  const tried = [best]
  for (
    let plan = fallbackPlan(best, errors[0]!);
    plan !== undefined;
    plan = fallbackPlan(plan, errors[tried.length - 1] ?? errors.at(-1)!)
  )
    tried.push(plan)
  return tried
}

const error = fc.constantFrom(NO_PROC, NO_SECCOMP, NO_NAMESPACES, 'It could not be started: EINVAL.', '')

t.test('whatever fails, each plan has less than the one before, and the last needs neither bubblewrap nor setpriv', async () => {
  fc.assert(
    fc.property(fc.subarray([...LAYER_NAMES]), fc.array(error, { minLength: 1 }), (wanted, errors) => {
      const tried = plans(planOf(wanted), errors)
      const last = tried.at(-1)!
      const keys = tried.map((plan) => [...plan.wanted].join() + String(plan.ownProc))
      return (
        !usesBubblewrap(last) &&
        !last.wanted.has('no-new-privileges') &&
        last.wanted.has('user') === wanted.includes('user') &&
        new Set(keys).size === keys.length &&
        tried.every(({ wanted }, index) => index === 0 || wanted.isSubsetOf(tried[index - 1]!.wanted))
      )
    }),
  )
})

t.test('it gives up no more than what the error is about', async (t) => {
  const best = planOf(LAYER_NAMES)
  const withoutProc = fallbackPlan(best, NO_PROC)
  t.match(withoutProc, { ownProc: false, wanted: best.wanted })
  t.strictSame([...best.wanted.difference(fallbackPlan(best, NO_SECCOMP)!.wanted)], ['seccomp'])
  t.strictSame(best.wanted.difference(fallbackPlan(best, NO_NAMESPACES)!.wanted), BUBBLEWRAP_LAYERS)
  t.strictSame(best.wanted.difference(fallbackPlan(withoutProc!, NO_PROC)!.wanted), BUBBLEWRAP_LAYERS)
})
