import type { MissingLayersInfo, SandboxInfo } from '@carpool/core'
import type { LayerReport } from './layers.ts'

/** Sums layers up: those that are off for the same reason stand together. Pure. */
export function sandboxInfo(layers: readonly LayerReport[]): SandboxInfo {
  const missing = layers.filter(({ state }) => state !== 'on')
  const byReason = Map.groupBy(missing, ({ why, remedy }) => `${why} ${remedy}`)
  return {
    on: layers.length - missing.length,
    total: layers.length,
    off: [...byReason.values()].map((group) => ({
      layers: group.map(({ name }) => name),
      why: group[0]!.why,
      remedy: group[0]!.remedy,
    })),
  }
}

/** The same without what is for admins alone. Pure. */
export function publicSandboxInfo({ on, total, off }: SandboxInfo): SandboxInfo {
  return { on, total, off: off.map(({ layers, remedy }) => ({ layers, remedy })) }
}

/**
 * How much of the sandbox there is, for people: first how many layers are on, then which are off, why, and what would bring them. Joined
 * with spaces it is one line. Pure.
 */
export function sandboxSentences({ on, total, off }: SandboxInfo): readonly string[] {
  if (off.length === 0) return [`Sandbox: all ${total} layers are on.`]
  return [`Sandbox: ${on} of ${total} layers are on.`, ...off.map(describeMissing)]
}

function describeMissing({ layers, why, remedy }: MissingLayersInfo): string {
  const what = `${layers.join(', ')} ${layers.length === 1 ? 'is' : 'are'} off`
  return [why === undefined ? `${what}.` : `${what}: ${why}`, remedy].join(' ')
}
