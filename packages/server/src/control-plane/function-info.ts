import type { FunctionInfo, Revision } from '@carpool/core'
import type { ControlPlaneOptions } from './control-plane-options.ts'

type Parts = Pick<ControlPlaneOptions, 'registry' | 'meter' | 'dataUrl' | 'isQuarantined'>

/** What the control plane tells of a function, by its live revision. */
export function functionInfo({ registry, meter, dataUrl, isQuarantined }: Parts, revision: Revision): FunctionInfo {
  const { functionName: name, owner, id, form, createdAt, codeBytes, limits } = revision
  const disabled = registry.disabledInfo(name)
  return {
    name,
    owner,
    state: disabled !== undefined ? 'disabled' : isQuarantined(name) ? 'quarantined' : 'active',
    ...(disabled !== undefined && { reason: disabled.reason }),
    revision: id,
    form,
    url: `${dataUrl()}/${name}/`,
    deployedAt: createdAt,
    codeBytes,
    limits,
    ...meter.countsOf(revision),
  }
}
