import type { LayerReport } from '../../../packages/sandbox/src/index.ts'
import type { Examination } from '../../../packages/server/src/index.ts'
import { CARPOOL, type Finished } from '../../support/command.ts'
import { runClean, type CleanOptions } from '../../support/run-clean.ts'

/** What `carpool doctor` found. */
export interface Found extends Examination, Finished {
  readonly ok: boolean
  isOn(layer: string): boolean
  layer(name: string): LayerReport
  /** For tests that need layers: why this machine does not have them and what would bring them; `false` if it has them all. */
  skipWithout(...layers: readonly string[]): string | false
}

/** Runs `carpool doctor` on any free ports. */
export async function doctor(flags: readonly string[] = [], options: CleanOptions = {}): Promise<Found> {
  const command = [CARPOOL, 'doctor', '--json', '--port', '0', '--admin-port', '0', ...flags]
  const finished = await runClean(command, options)
  const examination = JSON.parse(finished.stdout) as Examination & { readonly ok: boolean }
  const layer = (name: string): LayerReport => {
    const report = examination.layers.find((one) => one.name === name)
    if (report === undefined) throw new Error(`There is no layer ${name}.`)
    return report
  }
  return {
    ...examination,
    ...finished,
    layer,
    isOn: (name) => layer(name).state === 'on',
    skipWithout: (...layers) => {
      const missing = layers.map(layer).filter(({ state }) => state === 'unavailable')
      return missing.length > 0 && `no ${missing.map(({ name, why, remedy }) => `${name}: ${why} ${remedy}`).join(' No ')}`
    },
  }
}
