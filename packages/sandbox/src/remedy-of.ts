import { BUBBLEWRAP_LAYERS, type LayerName } from './layers.ts'

/** Bubblewrap's own words, and the kernel's, for what it could not do. */
const KERNEL_LACKS = /kernel does not support/
const NOT_PERMITTED = /No permissions|Permission denied|not permitted|namespaces exceeded|No space left on device/

/** What helps where a layer was tried and did not work, by what was said; undefined: what helps in general. Pure. */
export function remedyOf(name: LayerName, complaint: string): string | undefined {
  if (!BUBBLEWRAP_LAYERS.has(name)) return undefined
  if (KERNEL_LACKS.test(complaint)) return 'The kernel lacks it: run one with user namespaces.'
  if (NOT_PERMITTED.test(complaint)) return 'bubblewrap may not do it here: docs/sandbox.md says how to let it.'
  return 'Install bubblewrap anew: apt install --reinstall bubblewrap. docs/sandbox.md says what else it needs.'
}
