/**
 * Tries all attempts from behind each layer by itself, from behind none and from behind all, and prints what came of it as
 * JSON. A program of its own, for a test runner that hooks into the processes which its tests start would stand in the way of
 * every one of them.
 */
import { LAYER_NAMES, type LayerName } from '../../../packages/sandbox/src/index.ts'
import { openCanaries } from '../../../packages/sandbox/src/run-probe.ts'
import { ALL_ATTEMPTS, allowCoreDumps, couldDo, missingHere, type Attempt } from './hole.ts'

export interface Attack {
  /** Layers that this machine does not have, with the reason. */
  readonly missing: Readonly<Partial<Record<LayerName, string>>>
  /** What was tried. */
  readonly attempts: readonly Attempt[]
  /** What could be done from behind the layers, whose names stand with commas between them. */
  readonly done: Readonly<Record<string, readonly Attempt[]>>
}

const missing = await missingHere()
const canLeaveDumps = allowCoreDumps()
const attempts = ALL_ATTEMPTS.filter((name) => name !== 'leave a core dump' || canLeaveDumps)
const present = LAYER_NAMES.filter((name) => !missing.has(name))
const { canaries, close } = await openCanaries()
const done: Record<string, readonly Attempt[]> = {}
for (const layers of [[], ...present.map((name) => [name]), present]) {
  const could = await couldDo(layers, canaries)
  done[layers.join()] = attempts.filter((name) => could.has(name))
}
close()
const attack: Attack = { missing: Object.fromEntries(missing), attempts, done }
console.log(JSON.stringify(attack))
