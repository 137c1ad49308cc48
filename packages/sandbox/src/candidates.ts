import type { CagePlan } from './cage-plan.ts'
import { BUBBLEWRAP_LAYERS, type LayerName } from './layers.ts'

/** What a plan gives up, of what the best has, with the layers that are lost by it. */
interface Concession {
  readonly loses: readonly LayerName[]
  readonly ownProc?: false
}

/** From the dearest to what is left on every machine. */
const OF_NAMESPACES: readonly Concession[] = [
  { loses: [] },
  // Where parts of /proc are covered up, as in containers, the kernel lets nobody mount a fresh one.
  { loses: [], ownProc: false },
  { loses: ['seccomp'] },
  { loses: ['seccomp'], ownProc: false },
  { loses: [...BUBBLEWRAP_LAYERS] },
  { loses: [...BUBBLEWRAP_LAYERS, 'no-new-privileges'] },
]
const OF_USER: readonly Concession[] = [{ loses: [] }, { loses: ['user'] }]

/** Plans to be tried one after the other until one works, the best first, without those that come to the same. Pure. */
export function candidates(best: CagePlan): readonly CagePlan[] {
  const plans = OF_USER.flatMap((user) =>
    OF_NAMESPACES.map(({ loses, ownProc = best.ownProc }): CagePlan => {
      const lost = new Set([...user.loses, ...loses])
      return { ...best, ownProc, wanted: new Set([...best.wanted].filter((name) => !lost.has(name))) }
    }),
  )
  const keys = plans.map(({ wanted, ownProc }) => [...wanted].join() + String(ownProc && wanted.has('pid-namespace')))
  return plans.filter((_, index) => keys.indexOf(keys[index]!) === index)
}
