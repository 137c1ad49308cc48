import type { Registry } from '@carpool/registry'
import type { ServerMetrics } from '@carpool/telemetry'
import { REMEMBER_MS } from './host-reports/known-revisions.ts'

/**
 * Has functions leave the metrics that were deleted. Not at once: what runs of one is counted until it has ended, and whoever
 * reads the metrics now and then is to see its last figures.
 * @param later runs something once nothing of a function that is deleted now can be under way
 */
export function forgetDeleted(
  registry: Pick<Registry, 'find' | 'onRouteChange'>,
  metrics: Pick<ServerMetrics, 'forget'>,
  later: (run: () => void) => void = (run) => void setTimeout(run, REMEMBER_MS).unref(),
): void {
  registry.onRouteChange(({ functionName, current }) => {
    if (current !== undefined) return
    later(() => {
      // The name may have been deployed anew.
      if (registry.find(functionName) === undefined) metrics.forget(functionName)
    })
  })
}
