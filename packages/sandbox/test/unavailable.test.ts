import t from 'tap'
import { BUBBLEWRAP_LAYERS, LAYER_NAMES } from '../src/layers.ts'
import { unavailableLayers, type Machine } from '../src/unavailable.ts'

const GOOD: Machine = {
  isOff: false,
  platform: 'linux',
  tools: { sh: '/bin/sh', setpriv: '/usr/bin/setpriv', bubblewrap: '/usr/bin/bwrap' },
  bubblewrapProblem: undefined,
  hasFilter: true,
  serverUid: 0,
  hostUid: 60_999,
  unreadable: undefined,
  missingGroups: new Map(),
}

/** Layers that are not tried, by name. */
function found(changes: Partial<Machine>): Record<string, string> {
  return Object.fromEntries(
    [...unavailableLayers({ ...GOOD, ...changes })].map(([name, { state, why }]) => [name, `${state}: ${why}`]),
  )
}

t.test('as root on a Linux that has everything, everything is tried', async (t) => {
  t.strictSame(found({}), {})
})

t.test('switched off, only what needs nothing is left', async (t) => {
  const left = LAYER_NAMES.filter((name) => !(name in found({ isOff: true })))
  t.strictSame(left, ['permission', 'inheritance', 'rlimits'])
})

t.test('a user of its own takes root, a number, and a program that it may read', async (t) => {
  t.match(found({ serverUid: 1000 }), { user: 'unavailable: The server is not root, so hosts run as its user.' })
  t.match(found({ hostUid: 0 }), { user: /^off: hostUid is 0/ })
  t.match(found({ unreadable: '/home/me' }), { user: 'unavailable: User 60999 may not read or enter /home/me.' })
})

t.test('without bubblewrap its layers are missing, and with setpriv no others', async (t) => {
  const without = found({ tools: { sh: '/bin/sh', setpriv: '/usr/bin/setpriv' } })
  t.strictSame(Object.keys(without), [
    'user-namespace',
    'network-namespace',
    'mount-namespace',
    'pid-namespace',
    'ipc-namespace',
    'seccomp',
  ])
  t.match(found({ tools: { sh: '/bin/sh' } }), {
    'no-new-privileges': 'unavailable: Neither bubblewrap nor setpriv is installed.',
  })
})

t.test('a bubblewrap that is there and not sound is the reason', async (t) => {
  const bubblewrapProblem = { why: '/usr/bin/bwrap is there, but it is broken.', remedy: 'Install it anew.' }
  const tools = { sh: '/bin/sh', setpriv: '/usr/bin/setpriv' }
  const obstacle = { state: 'unavailable', ...bubblewrapProblem } as const
  t.strictSame(
    [...unavailableLayers({ ...GOOD, tools, bubblewrapProblem })],
    [...BUBBLEWRAP_LAYERS].map((name) => [name, obstacle]),
  )
  t.match(found({ tools: { sh: '/bin/sh' }, bubblewrapProblem }), {
    'no-new-privileges': `unavailable: ${bubblewrapProblem.why}`,
  })
})

t.test('whatever is missing comes with what brings it, which is one thing for all layers of bubblewrap', async (t) => {
  const remedies = (changes: Partial<Machine>) =>
    new Set([...unavailableLayers({ ...GOOD, ...changes }).values()].map(({ remedy }) => remedy))
  t.strictSame(remedies({ tools: { sh: '/bin/sh' } }), new Set(['Install it: apt install bubblewrap.']))
  t.strictSame(remedies({ isOff: true }), new Set(['Set sandbox to auto or require.']))
  t.strictSame(remedies({ hasFilter: false }), new Set(['x86-64 and ARM64 have one.']))
})

t.test('what else may be missing', async (t) => {
  t.strictSame(Object.keys(found({ hasFilter: false })), ['seccomp'])
  t.strictSame(Object.keys(found({ tools: { bubblewrap: '/usr/bin/bwrap' } })), ['rlimits', 'cgroup-memory', 'cgroup-tasks'])
  t.strictSame(found({ missingGroups: new Map([['pids', 'No.']]) }), { 'cgroup-tasks': 'unavailable: No.' })
  t.ok(Object.values(found({ platform: 'darwin' })).every((text) => text === 'unavailable: Only Linux has it.'))
})
