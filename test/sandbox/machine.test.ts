/** What a server does on machines that have less, as `carpool doctor` and `carpool serve` see them. */
import t from 'tap'
import { CARPOOL } from '../support/command.ts'
import { runClean, type CleanOptions } from '../support/run-clean.ts'
import { startServer, temporaryFolder } from '../support/server.ts'
import { doctor } from './support/doctor.ts'

const here = await doctor()
const MAIN = ['permission', 'rlimits', 'network-namespace', 'mount-namespace', 'pid-namespace']
const skip = here.skipWithout(...MAIN)
const isRoot = process.getuid?.() === 0

/** A machine where nobody may make user namespaces, as many are set up. */
const NO_USER_NAMESPACES: CleanOptions = { before: ['bwrap', '--dev-bind', '/', '/', '--unshare-user', '--disable-userns', '--'] }
/** A machine that covers parts of /proc, as containers do. */
const COVERED_PROC: CleanOptions = {
  before: ['bwrap', '--dev-bind', '/', '/', '--unshare-user', '--unshare-pid', '--proc', '/proc', '--tmpfs', '/proc/irq', '--'],
}

/** Runs `carpool serve`, which is to fail. */
async function serve(data: string, flags: readonly string[], options: CleanOptions = {}) {
  const command = [CARPOOL, 'serve', '--json', '--port', '0', '--admin-port', '0', '--data', data, ...flags]
  return await runClean(command, options)
}

t.test('what is on says what was seen, and what is not says why', async (t) => {
  for (const { name, state, why, stops, remedy } of here.layers) {
    for (const text of [why, stops, remedy]) t.match(text, /^[A-Z].*\.$/, `${name} is ${state}`)
  }
  t.ok(here.ok)
  t.equal(here.code, 0)
})

t.test('a server that requires the main layers starts where they are', { skip }, async (t) => {
  const server = await startServer(t, ['--sandbox', 'require'])
  t.equal((await server.info()).hosts.length, 1)
})

t.test('it does not where they are not, and says which, why, and how to get them', { skip }, async (t) => {
  const { code, stdout, stderr } = await serve(temporaryFolder(t), ['--sandbox', 'require'], NO_USER_NAMESPACES)
  t.equal(code, 1)
  const { error } = JSON.parse(stdout) as { error: { code: string; detail: string } }
  t.equal(error.code, 'sandbox-unavailable')
  for (const name of ['network-namespace', 'mount-namespace', 'pid-namespace']) t.match(error.detail, `${name} (It was tried`)
  t.match(error.detail, 'bubblewrap may not do it here: docs/sandbox.md says how to let it.')
  t.match(stderr, /^carpool: /m)
})

t.test('a single layer can be required, and only those that there are', async (t) => {
  const off = await serve(temporaryFolder(t), ['--sandbox', 'off', '--sandbox-require', 'seccomp'])
  t.equal(off.code, 1)
  t.match(off.stdout, /seccomp \(The sandbox is switched off\./)
  const wrong = await serve(temporaryFolder(t), ['--sandbox-require', 'firewall'])
  t.equal(wrong.code, 2)
  t.match(wrong.stderr, 'firewall')
  t.match(wrong.stderr, 'network-namespace')
})

t.test('without user namespaces the rest is still on, and hosts start', { skip }, async (t) => {
  const found = await doctor([], NO_USER_NAMESPACES)
  for (const name of ['permission', 'inheritance', 'rlimits', 'no-new-privileges']) t.ok(found.isOn(name), found.layer(name).why)
  t.match(found.layer('network-namespace'), { state: 'unavailable', why: /^It was tried and does not work here: bwrap: / })
  t.match(
    found.checks.find(({ name }) => name === 'host process'),
    { state: 'ok' },
  )
})

t.test('where /proc is covered up, only its own processes are not to be had', { skip }, async (t) => {
  const found = await doctor([], COVERED_PROC)
  for (const name of ['network-namespace', 'mount-namespace', 'seccomp']) t.ok(found.isOn(name), found.layer(name).why)
  t.match(found.layer('pid-namespace'), {
    state: 'unavailable',
    why: /^It could see the processes of others\. A fresh \/proc could not be mounted: bwrap: /,
  })
  t.match(
    found.checks.find(({ name }) => name === 'host process'),
    { state: 'ok' },
  )
})

t.test(
  'who is not root needs none of it for namespaces',
  { skip: !isRoot ? 'only root can be somebody else' : skip },
  async (t) => {
    const found = await doctor([], { uid: 65_534 })
    t.match(found.layer('user'), { state: 'unavailable', why: 'The server is not root, so hosts run as its user.' })
    for (const name of [...MAIN, 'user-namespace', 'no-new-privileges']) t.ok(found.isOn(name), found.layer(name).why)
  },
)

t.test('doctor --strict fails where a layer is not on, and so does plain doctor if it is required', async (t) => {
  const flags = ['--sandbox', 'off']
  const plain = await doctor(flags)
  t.equal(plain.code, 0)
  t.match(
    plain.checks.find(({ name }) => name === 'sandbox'),
    { state: 'warning' },
  )
  t.equal((await doctor([...flags, '--strict'])).code, 1)
  const required = await doctor([...flags, '--sandbox-require', 'user'])
  t.equal(required.code, 1)
  t.notOk(required.ok)
})
