import type { Admission } from '@carpool/admission'
import type { Invoke } from '@carpool/core'
import type { Fleet } from '@carpool/fleet'
import type { Meter } from '@carpool/metering'
import type { Registry } from '@carpool/registry'
import type { FunctionJournal } from './function-journal.ts'
import { runInHost } from './run-in-host.ts'

export interface InvokeParts {
  readonly registry: Registry
  readonly admission: Admission
  readonly fleet: Fleet
  readonly meter: Meter
  readonly journal: FunctionJournal
}

/** The life of one invocation. Each step may refuse it with an error whose code names the step; from `invoke` on it has an outcome. */
export function createInvoke({ registry, admission, fleet, meter, journal }: InvokeParts): Invoke {
  return async ({ id, functionName, trigger, request, cancellation, waitedMs }) => {
    const revision = registry.route(functionName) // route
    const metering = meter.begin({ id, revision, trigger, request, waitedMs })
    try {
      registry.checkEnabled(functionName)
      const permit = admission.admit(revision) // admit
      try {
        const result = await runInHost(fleet, { revision, id, request, cancellation, metering }) // place, invoke
        if (result.outcome !== 'ok') journal.failed(revision, id, result)
        const record = await metering.finish(result) // meter
        return { result, record } // respond: the caller's part
      } finally {
        permit.release()
      }
    } catch (cause) {
      throw await metering.refuse(cause) // meter
    }
  }
}
