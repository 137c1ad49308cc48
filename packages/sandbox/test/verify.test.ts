import t from 'tap'
import { VERIFY, PERMISSION_ATTEMPTS, SYSTEM_ATTEMPTS, type Evidence } from '../src/verify.ts'
import { LAYER_NAMES } from '../src/layers.ts'

const namespaces = (number: number): Record<string, string> =>
  Object.fromEntries(['user', 'net', 'mnt', 'pid', 'ipc', 'uts'].map((name) => [name, `${name}:[${number}]`]))

/** What is seen where every layer works. */
const GOOD: Evidence = {
  results: Object.fromEntries(SYSTEM_ATTEMPTS.map((name) => [name, 'EPERM'])),
  resultsWithPermission: Object.fromEntries(PERMISSION_ATTEMPTS.map((name) => [name, 'ERR_ACCESS_DENIED'])),
  facts: {
    uid: 60_999,
    gid: 60_999,
    groups: [60_999],
    environment: ['PWD'],
    openFiles: ['socket:[1]'],
    namespaces: namespaces(2),
    limits: { core_file_size_blocks: 0, file_size_blocks: 0, open_files: 512 },
    hasNoNewPrivileges: true,
    capabilities: '0000000000000000',
  },
  serverFacts: { namespaces: namespaces(1), openFiles: ['socket:[2]'] },
  joined: { memory: true, pids: true },
  uid: 60_999,
}

function holding(changes: Partial<Omit<Evidence, 'facts'>> & { facts?: Partial<Evidence['facts']> }): readonly string[] {
  const evidence = { ...GOOD, ...changes, facts: { ...GOOD.facts, ...changes.facts } }
  return LAYER_NAMES.filter((name) => VERIFY[name](evidence).works)
}

t.test('where everything is as it should be, every layer holds', async (t) => {
  t.strictSame(holding({}), LAYER_NAMES)
})

t.test('each layer falls by what it should have stopped, and no other does', async (t) => {
  const cases: ReadonlyArray<readonly [layer: string, changes: Parameters<typeof holding>[0]]> = [
    ['permission', { resultsWithPermission: { ...(GOOD.resultsWithPermission as object), 'write a file': 'EACCES' } }],
    ['permission', { resultsWithPermission: 'It ended with SIGSEGV.' }],
    ['inheritance', { facts: { environment: ['AWS_SECRET_ACCESS_KEY'] } }],
    ['inheritance', { facts: { openFiles: ['socket:[2]'] } }],
    ['rlimits', { facts: { limits: { ...GOOD.facts.limits, core_file_size_blocks: 'unlimited' } } }],
    ['rlimits', { facts: { limits: { ...GOOD.facts.limits, file_size_blocks: 1 } } }],
    ['user', { facts: { uid: 0 } }],
    ['user', { facts: { groups: [60_999, 4] } }],
    ['no-new-privileges', { facts: { hasNoNewPrivileges: false } }],
    ['no-new-privileges', { facts: { capabilities: '0000000000000001' } }],
    ['user-namespace', { facts: { namespaces: { ...namespaces(2), user: 'user:[1]' } } }],
    ['network-namespace', { facts: { namespaces: { ...namespaces(2), net: '' } } }],
    ['network-namespace', { results: { ...GOOD.results, 'connect to an abstract UNIX socket': 'done' } }],
    ['mount-namespace', { results: { ...GOOD.results, 'list a folder': 'done' } }],
    ['pid-namespace', { results: { ...GOOD.results, 'signal the server': 'done' } }],
    ['ipc-namespace', { facts: { namespaces: { ...namespaces(2), uts: 'uts:[1]' } } }],
    ['seccomp', { results: { ...GOOD.results, 'connect to a TCP port': 'ECONNREFUSED' } }],
    ['cgroup-memory', { joined: { memory: false, pids: true } }],
    ['cgroup-tasks', { joined: { memory: true, pids: false } }],
  ]
  for (const [layer, changes] of cases) {
    t.strictSame(
      holding(changes),
      LAYER_NAMES.filter((name) => name !== layer),
      layer,
    )
  }
})
