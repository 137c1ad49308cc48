import { CarpoolError } from '@carpool/core'
import t from 'tap'
import {
  LAYER_NAMES,
  type LayerName,
  type LayerReport,
  LAYERS,
  publicSandboxInfo,
  requireLayers,
  sandboxInfo,
  sandboxSentences,
} from '../src/layers.ts'

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

/** All layers, on but for these. */
function layers(missing: Readonly<Record<string, Partial<LayerReport>>> = {}): readonly LayerReport[] {
  return LAYER_NAMES.map((name) => ({ name, state: 'on', why: 'It was seen.', ...LAYERS[name], ...missing[name] }))
}

const MISSING = {
  state: 'unavailable',
  why: 'bubblewrap is not installed.',
  remedy: 'Install it: apt install bubblewrap.',
} as const

t.test('if all is on, that is all there is to say', async (t) => {
  const info = sandboxInfo(layers())
  t.strictSame(info, { on: LAYER_NAMES.length, total: LAYER_NAMES.length, off: [] })
  t.strictSame(sandboxSentences(info), [`Sandbox: all ${LAYER_NAMES.length} layers are on.`])
})

t.test('what is off stands together with what is off for the same reason', async (t) => {
  const off = { state: 'off', why: 'It is switched off.', remedy: 'Switch it on.' } as const
  const info = sandboxInfo(layers({ 'user': off, 'network-namespace': MISSING, 'seccomp': MISSING }))
  t.strictSame(info, {
    on: LAYER_NAMES.length - 3,
    total: LAYER_NAMES.length,
    off: [
      { layers: ['user'], why: off.why, remedy: off.remedy },
      { layers: ['network-namespace', 'seccomp'], why: MISSING.why, remedy: MISSING.remedy },
    ],
  })
  t.strictSame(sandboxSentences(info), [
    `Sandbox: ${LAYER_NAMES.length - 3} of ${LAYER_NAMES.length} layers are on.`,
    'user is off: It is switched off. Switch it on.',
    'network-namespace, seccomp are off: bubblewrap is not installed. Install it: apt install bubblewrap.',
  ])
})

t.test('others than admins see what is off and what helps, but not why', async (t) => {
  const info = publicSandboxInfo(sandboxInfo(layers({ user: { ...MISSING, why: '/root/bwrap is there.' } })))
  t.notMatch(JSON.stringify(info), '/root')
  t.strictSame(sandboxSentences(info), ['Sandbox: 12 of 13 layers are on.', 'user is off. Install it: apt install bubblewrap.'])
})
