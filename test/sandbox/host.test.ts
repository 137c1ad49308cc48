/** The hosts of a real server, as the kernel sees them. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { ownGroups } from '../../packages/sandbox/src/control-groups.ts'
import { ROOT } from '../support/command.ts'
import { startServer, until, type TestServer } from '../support/server.ts'
import { doctor } from './support/doctor.ts'

if (process.platform !== 'linux') {
  t.pass('only Linux tells so much of a process', { skip: true })
  process.exit()
}

const found = await doctor()
/** Marks what needs layers that this machine may not have. */
const needs = (...layers: readonly string[]): { readonly skip: string | false } => ({ skip: found.skipWithout(...layers) })

const HELLO = `export default { fetch: () => new Response('hello') }`
const BUSY = `export default { fetch() { const end = Date.now() + 1500; let n = 0; for (let i = 0; i < 3e8; i++) n += i; return new Response(String(n)) } }`

async function hostOf(server: TestServer): Promise<number> {
  const response = await server.get('/hello/')
  if ((await response.text()) !== 'hello') throw new Error('The function does not answer.')
  return (await server.info()).hosts[0]!.pid
}

const fileOf = (pid: number | 'self', name: string): string => readFileSync(`/proc/${pid}/${name}`, 'latin1')
const statusOf = (pid: number, field: string): string =>
  new RegExp(`^${field}:[ \\t]*(.*)$`, 'm').exec(fileOf(pid, 'status'))?.[1] ?? ''
const statOf = (pid: number | 'self'): readonly string[] =>
  fileOf(pid, 'stat')
    .replace(/^.*\) /, '')
    .split(' ')
const parentOf = (pid: number): number => Number(statOf(pid)[1])
const sessionOf = (pid: number): string => statOf(pid)[3] ?? ''
const thingsOf = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))

/** The server's own process, found from one of its hosts. */
function serverOf(pid: number): number {
  let ancestor = pid
  while (!fileOf(ancestor, 'cmdline').includes('carpool.js')) ancestor = parentOf(ancestor)
  return ancestor
}

/** Shared; the last test that it is in ends it. */
const shared = await startServer(t)
await shared.deploy('hello', HELLO)

t.test('a host that serves has every layer that doctor tells of', async (t) => {
  const server = shared
  const pid = await hostOf(server)
  const serverPid = serverOf(pid)

  t.test('user', needs('user'), async (t) => {
    t.equal(statusOf(pid, 'Uid'), Array(4).fill('60999').join('\t'))
    t.equal(statusOf(pid, 'Gid'), Array(4).fill('60999').join('\t'))
    t.equal(statusOf(pid, 'Groups').replace('60999', '').trim(), '')
  })
  t.test('no-new-privileges', needs('no-new-privileges'), async (t) => {
    t.equal(statusOf(pid, 'NoNewPrivs'), '1')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) t.equal(statusOf(pid, set), '0000000000000000', set)
  })
  t.test('seccomp', needs('seccomp'), async (t) => t.equal(statusOf(pid, 'Seccomp'), '2'))
  for (const [layer, names] of Object.entries({
    'user-namespace': ['user'],
    'network-namespace': ['net'],
    'mount-namespace': ['mnt'],
    'pid-namespace': ['pid'],
    'ipc-namespace': ['ipc', 'uts'],
  })) {
    t.test(layer, needs(layer), async (t) => {
      for (const name of names) t.not(readlinkSync(`/proc/${pid}/ns/${name}`), readlinkSync(`/proc/self/ns/${name}`))
    })
  }
  t.test('rlimits', needs('rlimits'), async (t) => {
    const limits = fileOf(pid, 'limits')
    t.match(limits, /^Max core file size +0 +0 /m)
    t.match(limits, /^Max file size +0 +0 /m)
    t.match(limits, /^Max open files +512 +512 /m)
    t.equal(fileOf(pid, 'oom_score_adj').trim(), '500')
  })
  t.test('inheritance', async (t) => {
    t.match(fileOf(pid, 'environ'), /^(?:PWD=\/\0)?$/)
    const shared = new Set(thingsOf(serverPid).filter((thing) => !thing.startsWith('anon_inode:') && thing !== '/dev/null'))
    t.strictSame(
      thingsOf(pid).filter((thing) => shared.has(thing)),
      [],
      'no descriptor of the server',
    )
    t.not(sessionOf(pid), sessionOf(serverPid))
  })
  t.test('mount-namespace, what is in it', needs('mount-namespace'), async (t) => {
    const root = `/proc/${pid}/root`
    for (const path of ['etc/passwd', 'tmp', 'dev', 'home', 'root', 'usr/bin', 'bin']) {
      // Where this program lies, there is the way to it, and nothing beside that.
      const way = ROOT.startsWith(`/${path}/`) ? [ROOT.slice(path.length + 2).split('/')[0]] : undefined
      if (way === undefined) t.throws(() => readdirSync(join(root, path)), path)
      else t.strictSame(readdirSync(join(root, path)), way)
    }
    t.throws(() => readFileSync(join(root, server.dataDir, 'admin-token')))
    const mounts = fileOf(pid, 'mountinfo')
      .trim()
      .split('\n')
      .filter((line) => !/ - proc /.test(line))
    t.ok(
      mounts.every((line) => line.split(' ')[5]?.startsWith('ro,')),
      'nothing can be written',
    )
  })
  t.test('control groups', needs('cgroup-memory', 'cgroup-tasks'), async (t) => {
    const folders = groupFoldersOf(pid)
    t.strictSame([...folders.keys()].toSorted(), ['memory', 'pids'])
    for (const folder of folders.values()) {
      t.ok(basename(folder).startsWith(`carpool-${serverPid}-`), folder)
      t.ok(existsSync(folder), folder)
    }
    process.kill(pid, 'SIGKILL')
    // The server takes them away when the last process of the host is gone.
    await until(async () => [...folders.values()].every((folder) => !existsSync(folder)))
  })
})

/** Where the control groups of a process are, by controller. */
function groupFoldersOf(pid: number): ReadonlyMap<string, string> {
  const groups = ownGroups(fileOf(pid, 'cgroup'), fileOf('self', 'mountinfo'), (folder) =>
    readFileSync(join(folder, 'cgroup.controllers'), 'utf8'),
  )
  return new Map([...groups].map(([controller, { folder }]) => [controller, folder]))
}

t.test('CPU and memory are those of the host, not of what stands in front of it', async (t) => {
  const server = shared
  await hostOf(server)
  await server.deploy('busy', BUSY, '--cpu-ms', '30000')
  const call = server.get('/busy/')
  const host = await until(async () => (await server.status()).hosts.find(({ cpuCores }) => cpuCores > 0.1))
  t.ok(host.memoryBytes > 40 * 1024 * 1024, `${host.memoryBytes} bytes`)
  t.match(fileOf(host.pid, 'cmdline'), /^[^\0]*node\0--no-node-snapshot\0/)
  for (const flag of ['--no-wasm-code-gc', '--no-flush-liftoff-code', '--no-validate-asm'])
    t.match(fileOf(host.pid, 'cmdline'), `\0${flag}\0`)
  t.equal((await call).status, 200)
})

t.test('without a sandbox a host is started as it is, but for what costs nothing', async (t) => {
  const server = await startServer(t, ['--sandbox', 'off'])
  await server.deploy('hello', HELLO)
  const pid = await hostOf(server)
  t.equal(parentOf(pid), serverOf(pid))
  t.equal(readlinkSync(`/proc/${pid}/ns/net`), readlinkSync('/proc/self/ns/net'))
  t.match(fileOf(pid, 'limits'), /^Max core file size +0 +0 /m)
})

t.test('whoever stands in front of a host that is killed as it starts goes with it', async (t) => {
  const pid = await hostOf(shared)
  const chain: number[] = []
  for (let ancestor = parentOf(pid); ancestor !== serverOf(pid); ancestor = parentOf(ancestor)) chain.push(ancestor)
  process.kill(chain.at(-1) ?? pid, 'SIGKILL')
  await gone(t, [pid, ...chain])
})

t.test('by which signal a host has ended is reported', async (t) => {
  const signals = ['SIGKILL', 'SIGABRT', 'SIGSEGV'] as const
  for (const signal of signals) {
    const pid = await hostOf(shared)
    process.kill(pid, signal)
    await until(async () => (await shared.info()).hosts.every((host) => host.pid !== pid) && (await shared.get('/hello/')).ok)
  }
  const { stderr } = await shared.stop()
  for (const signal of signals) t.match(stderr, new RegExp(`"how":"${signal}"`))
})

async function gone(t: Test, pids: readonly number[]): Promise<void> {
  for (const pid of pids) await until(async () => !isAlive(pid))
  t.pass('all are gone')
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
