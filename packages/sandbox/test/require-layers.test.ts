import { CarpoolError } from '@carpool/core'
import t from 'tap'
import { LAYER_NAMES, LAYERS, type LayerName, type LayerReport } from '../src/layers.ts'
import { requireLayers } from '../src/require-layers.ts'

function reports(on: readonly LayerName[]): readonly LayerReport[] {
  return LAYER_NAMES.map((name) => ({
    name,
    state: on.includes(name) ? 'on' : 'unavailable',
    why: `No ${name}.`,
    ...LAYERS[name],
  }))
}

const MAIN: readonly LayerName[] = [
  'permission',
  'inheritance',
  'rlimits',
  'user',
  'network-namespace',
  'mount-namespace',
  'pid-namespace',
]

t.test('the main layers are enough, and a user namespace does for a user', async (t) => {
  requireLayers(reports(MAIN))
  requireLayers(reports([...MAIN.filter((name) => name !== 'user'), 'user-namespace']))
  t.pass()
})

t.test('each main layer that is missing is named, with why and how to get it', async (t) => {
  for (const missing of MAIN) {
    const error = t.throws(() => requireLayers(reports(MAIN.filter((name) => name !== missing)))) as unknown as CarpoolError
    t.match(error, { code: 'sandbox-unavailable' })
    t.match(error.message, missing)
    t.match(error.message, `(No ${missing}. ${LAYERS[missing].remedy}`)
    for (const other of MAIN) if (other !== missing) t.notMatch(error.message, `No ${other}.`)
  }
})

t.test('a list of its own takes the place of the main ones', async (t) => {
  requireLayers(reports(['seccomp']), ['seccomp'])
  t.throws(() => requireLayers(reports(MAIN), ['cgroup-memory', 'seccomp']), { message: /cgroup-memory .*; seccomp / })
})
