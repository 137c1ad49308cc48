import { CarpoolError } from '@carpool/core'
import type { LayerName, LayerReport } from './layers.ts'

/** What `sandbox=require` means: of each row at least one must be on. */
const REQUIRED: ReadonlyArray<readonly LayerName[]> = [
  ['permission'],
  ['inheritance'],
  ['rlimits'],
  ['user', 'user-namespace'],
  ['network-namespace'],
  ['mount-namespace'],
  ['pid-namespace'],
]

/**
 * @param only the layers that must be on; empty: Node.js' permission model, nothing inherited from the server, limits on resources, a user or a user namespace of its own, and
 *   namespaces for network, mounts and processes
 * @throws CarpoolError `sandbox-unavailable`, naming each layer that is missing, why, and how to get it
 */
export function requireLayers(layers: readonly LayerReport[], only: readonly LayerName[] = []): void {
  const isOn = new Set(layers.filter(({ state }) => state === 'on').map(({ name }) => name))
  const rows = only.length > 0 ? only.map((name) => [name]) : REQUIRED
  const missing = rows.filter((row) => !row.some((name) => isOn.has(name)))
  if (missing.length === 0) return
  const details = missing.map((row) => {
    const reports = layers.filter(({ name }) => row.includes(name))
    return `${row.join(' or ')} (${reports.map(({ why, remedy }) => `${why} ${remedy}`).join(' ')})`
  })
  throw new CarpoolError('sandbox-unavailable', `These layers of the sandbox are required and not on: ${details.join('; ')}.`)
}
