import { CarpoolError, type MissingLayersInfo, type SandboxInfo } from '@carpool/core'
import type { LayerName } from './layers.ts'

/** `on`: seen to work here. `off`: switched off, or it does not stop what it should. `unavailable`: this machine does not have it. */
export type LayerState = 'on' | 'off' | 'unavailable'

/** A layer as it is on this machine. */
export interface LayerReport {
  readonly name: LayerName
  readonly state: LayerState
  /** What was seen, or what is missing, in a sentence for operators. */
  readonly why: string
  /** What it stops, in a sentence. */
  readonly stops: string
  /** How to get it, in a sentence. */
  readonly remedy: string
}

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
 * @param only the layers that must be on; empty: those that `sandbox=require` stands for
 * @throws CarpoolError `sandbox-unavailable`, naming each layer that is missing, why, and how to get it
 */
export function requireLayers(layers: readonly LayerReport[], only: readonly LayerName[] = []): void {
  const rows = only.length > 0 ? only.map((name) => [name]) : REQUIRED
  const details = rows.flatMap((row) => {
    const reports = layers.filter(({ name }) => row.includes(name))
    if (reports.some(({ state }) => state === 'on')) return []
    return [`${row.join(' or ')} (${reports.map(({ why, remedy }) => `${why} ${remedy}`).join(' ')})`]
  })
  if (details.length === 0) return
  throw new CarpoolError('sandbox-unavailable', `These layers of the sandbox are required and not on: ${details.join('; ')}.`)
}

/** Sums layers up: those that are off for the same reason stand together. Pure. */
export function sandboxInfo(layers: readonly LayerReport[]): SandboxInfo {
  const missing = layers.filter(({ state }) => state !== 'on')
  const byReason = Map.groupBy(missing, ({ why, remedy }) => `${why} ${remedy}`)
  const off = [...byReason.values()].map((group) => ({
    layers: group.map(({ name }) => name),
    why: group[0]!.why,
    remedy: group[0]!.remedy,
  }))
  return { on: layers.length - missing.length, total: layers.length, off }
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
