/**
 * Group C9 of the list of attacks: the process around the isolates. That each layer of its sandbox stops what it should is
 * shown by test/sandbox.
 */
import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ROOT, startCarpool, untilEnd } from '../support/command.ts'
import { temporaryFolder } from '../support/server.ts'
import { call as callUrl, type Answer } from './harness/call.ts'
import { deployScript } from './harness/control.ts'
import { FORM } from './harness/form.ts'
import type { CaseContext } from './harness/isolation-case.ts'
import { sampleProcess } from './harness/process-sample.ts'
import { runCases } from './harness/run-cases.ts'
import { casesOf } from './support-b/cases-of.ts'
import { pathTo } from './support-b/fetch-attempts.ts'
import { comes, eventually } from './support-b/patience.ts'
import { startRawUpstream } from './support-b/raw-upstream.ts'
import { pidOf } from './support-b/server-process.ts'

const platform = casesOf('platform', { verdict: 'OK', again: 'any', isRepeatable: false })

/** Nothing but the end of its process ends this. */
const STUCK = 'let number = 3n; for (;;) number = number * number;'

const STUCK_HOSTS = [
  platform('X02', 'calls of others in a host in which a thread is stuck for good', {
    verdict: 'P',
    billed: 'heartbeat',
    limits: { cpuMs: 50, wallMs: 1_000 },
    handler: STUCK,
    expect: { code: /^(?:cpu-exceeded|timeout|host-lost)$/ },
    again: 'skipped',
    attack: async ({ t, rig, name, call }) => {
      const waiting = `${name}-waiting`
      const code = `(function () { return { default: { async fetch(request) {
        const to = new URL(request.url).searchParams.get('to');
        return new Response((await fetch(to)).headers.get('x-said'))
      } } } })`
      t.equal((await deployScript(rig.server, waiting, { code })).status, 201)
      const go = Promise.withResolvers<void>()
      const upstream = await startRawUpstream(t, (socket) => {
        void go.promise.then(() =>
          socket.write('HTTP/1.1 200 OK\r\nx-said: go\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'),
        )
      })
      const before = await rig.host()
      // Not repeated elsewhere, so that it is this host which must answer.
      const held = Array.from({ length: 5 }, () =>
        callUrl(`${rig.server.url}/${waiting}${pathTo(upstream.url)}`, { method: 'POST' }),
      )
      await comes(t, 'five calls are under way', upstream.untilRequests(5))
      const stuck = await call()
      await eventually(t, 'another host takes its place', async () => (await rig.host()).pid !== before.pid)
      go.resolve()
      for (const { status, text } of await Promise.all(held)) t.equal(`${status} ${text}`, '200 go', 'they end as they should')
      t.equal((await rig.neighbour.check()).wrong, undefined)
      await eventually(t, 'then it ends', () => sampleProcess(before.pid) === undefined)
      return { answers: [stuck] }
    },
  }),
]

interface Layer {
  readonly name: string
  readonly state: 'on' | 'off' | 'unavailable'
}

/** How one sees from outside that a layer is on for a process. */
const SEEN: Readonly<Record<string, (pid: number) => boolean>> = {
  'permission': (pid) => argumentsOf(pid).includes('--permission'),
  // bubblewrap says where it starts.
  'inheritance': (pid) => /^(?:PWD=\/\0)?$/.test(readFileSync(`/proc/${pid}/environ`, 'utf8')),
  'rlimits': (pid) => /^Max core file size +0 +0 /m.test(readFileSync(`/proc/${pid}/limits`, 'utf8')),
  'user': (pid) => !/^Uid:\t0\t/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')),
  'no-new-privileges': (pid) => /^NoNewPrivs:\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')),
  'seccomp': (pid) => /^Seccomp:\t2$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8')),
  'user-namespace': (pid) => isOwn(pid, 'user'),
  'network-namespace': (pid) => isOwn(pid, 'net'),
  'mount-namespace': (pid) => isOwn(pid, 'mnt'),
  'pid-namespace': (pid) => isOwn(pid, 'pid'),
  'ipc-namespace': (pid) => isOwn(pid, 'ipc'),
  'cgroup-memory': (pid) => isOwnGroup(pid),
  'cgroup-tasks': (pid) => isOwnGroup(pid),
}

function argumentsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
}

function isOwn(pid: number, namespace: string): boolean {
  return readlinkSync(`/proc/${pid}/ns/${namespace}`) !== readlinkSync(`/proc/self/ns/${namespace}`)
}

function isOwnGroup(pid: number): boolean {
  return readFileSync(`/proc/${pid}/cgroup`, 'utf8') !== readFileSync('/proc/self/cgroup', 'utf8')
}

/** What a descriptor may be open on. */
const NO_FILE = /^(?:socket:|pipe:|anon_inode:|\/dev\/null$|\/dev\/urandom$)/

/** What a process has open: where the kernel shows it, and what it is. */
function openOf(pid: number): { readonly path: string; readonly target: string }[] {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).flatMap((fd) => {
    const path = join(folder, fd)
    try {
      return [{ path, target: readlinkSync(path) }]
    } catch {
      // Closed since the folder was listed.
      return []
    }
  })
}

function isRootOf(pid: number, path: string): boolean {
  const [root, opened] = [statSync(`/proc/${pid}/root/`), statSync(path)]
  return root.dev === opened.dev && root.ino === opened.ino
}

async function layers({ t, rig }: CaseContext): Promise<readonly Layer[]> {
  const args = ['doctor', '--json', '--port', '0', '--admin-port', '0', '--data', temporaryFolder(t)]
  const { stdout, stderr } = await untilEnd(startCarpool(args, { CARPOOL_STATE_DIR: rig.server.stateDir }))
  t.equal(stderr, '')
  return (JSON.parse(stdout) as { layers: readonly Layer[] }).layers
}

const SANDBOX = [
  platform('X05', 'calls of the kernel that a host has no use for', {
    skip: 'test/sandbox tries them from a host with a hole, with each layer alone and with all of them.',
  }),
  platform('X06a', 'what doctor says of the sandbox, against the process that runs functions', {
    attack: async (context) => {
      const { t, rig } = context
      const { pid } = await rig.host()
      const on = (await layers(context)).filter(({ state }) => state === 'on').map(({ name }) => name)
      for (const always of ['permission', 'inheritance', 'rlimits']) t.ok(on.includes(always), `${always} is on everywhere`)
      for (const name of on) t.ok(SEEN[name]?.(pid), `${name} is on for the host`)
      return { answers: [await context.call()] }
    },
  }),
  platform('X06b', 'what a host has open', {
    attack: async ({ t, rig, call }) => {
      const { pid } = await rig.host()
      const open = openOf(pid)
      const files = open.filter(({ target, path }) => !NO_FILE.test(target) && !isRootOf(pid, path))
      t.strictSame(
        files.map(({ target }) => target),
        [],
        'no file, and no folder but its own root',
      )
      const own = new Set(openOf(pidOf(rig.server)).map(({ target }) => target))
      const shared = open.filter(({ target }) => target.startsWith('socket:') && own.has(target))
      t.strictSame(shared, [], 'it has the other ends of its sockets, not those of the server')
      t.notMatch(argumentsOf(pid).join(' '), rig.canary.secret)
      return { answers: [await call()] }
    },
  }),
  platform('X07', 'what the permission model lets a host do', {
    attack: async ({ t, rig, call }) => {
      const allowed = argumentsOf((await rig.host()).pid).filter((argument) => argument.startsWith('--allow'))
      const kinds = new Set(allowed.map((argument) => argument.split('=')[0]))
      t.strictSame(kinds, new Set(['--allow-addons', '--allow-fs-read']))
      const readable = allowed.filter((argument) => argument.startsWith('--allow-fs-read=')).map((argument) => argument.slice(16))
      t.notOk(
        readable.some((path) => path === '*' || path === '/*' || rig.canary.dataDir.startsWith(path.replace(/\*$/, ''))),
        `it may read ${readable.length} folders of the program, and no data`,
      )
      return { answers: [await call()] }
    },
  }),
  platform('X08', 'versions of what isolates rest on', {
    attack: async ({ t, call }) => {
      const read = (path: string): Record<string, never> =>
        JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Record<string, never>
      const { dependencies } = read('host/package.json') as unknown as { dependencies: Record<string, string> }
      t.match(dependencies['isolated-vm'], /^\d+\.\d+\.\d+$/, 'one exact version of isolated-vm')
      const { packages } = read('package-lock.json') as unknown as {
        packages: Record<string, { version: string; integrity?: string }>
      }
      const locked = packages['node_modules/isolated-vm']
      t.equal(locked?.version, dependencies['isolated-vm'])
      t.match(locked?.integrity, /^sha512-/, 'and the hash of its files, its binaries among them')
      t.match(packages['node_modules/undici']?.integrity, /^sha512-/)
      return { answers: [await call()] }
    },
  }),
]

const SOAK_MS = FORM.isFull ? 60_000 : FORM.hasVariants ? 3_000 : 1_500
/** What of memory comes and goes for reasons of its own, in MiB: heaps are not given back at once. */
const MEMORY_SLACK_MB = 150
const COUNT_SLACK = 12

/** Attacks that end their isolates, fail, flood and leave things behind, and calls that do nothing wrong. */
const MIXED = `
  const path = new URL(request.url).pathname;
  if (path === '/spin') for (;;);
  if (path === '/throw') throw new Error('no');
  if (path === '/memory') { const kept = []; for (;;) kept.push(new Array(1e4).fill(1.5)) }
  if (path === '/leave') { for (let i = 0; i < 20; i++) { setTimeout(() => {}, 500); fetch(env.UPSTREAM).catch(() => {}) } }
  if (path === '/flood') for (let i = 0; i < 2000; i++) console.log('line ' + i);
  if (path === '/wait') await new Promise(() => {});
  return new Response('fine')`

const SOAK = [
  platform('X12', 'good and evil calls for a while, and what is left of them', {
    verdict: 'K',
    // Who waits for others of its isolate until its time is up has used nothing.
    billed: 'heartbeat',
    limits: { cpuMs: 50, wallMs: 600, memoryMb: 32 },
    handler: MIXED,
    expect: { code: /^(?:|exception|cpu-exceeded|memory-exceeded|timeout|isolate-lost)$/ },
    attack: async ({ t, rig, call }) => {
      const pids = [pidOf(rig.server), (await rig.host()).pid]
      const paths = ['/', '/', '/', '/throw', '/spin', '/leave', '/', '/flood', '/wait', '/memory']
      const round = async (): Promise<Answer[]> => Promise.all(paths.map((path) => call(path)))
      // What starts once and stays is there before the first look.
      const answers = [...(await round()), ...(await round())]
      const before = pids.map((pid) => sampleProcess(pid))
      for (const untilMs = performance.now() + SOAK_MS; performance.now() < untilMs; ) answers.push(...(await round()))
      for (const [index, pid] of pids.entries()) {
        const first = before[index]
        const whose = ['server', 'host'][index]
        await eventually(t, `${whose}: threads, descriptors and memory are back to ${JSON.stringify(first)}`, () => {
          const now = sampleProcess(pid)
          if (first === undefined || now === undefined) return false
          const isSettled = now.threads <= first.threads + COUNT_SLACK && now.descriptors <= first.descriptors + COUNT_SLACK
          return isSettled && now.residentMb <= first.residentMb + MEMORY_SLACK_MB
        })
      }
      return { answers }
    },
    check: ({ t }, { answers, records }) => {
      const ids = new Set(records.map(({ id }) => id))
      t.ok(ids.size === records.length && answers.every(({ id }) => ids.has(id)), `${answers.length} calls, one record each`)
    },
  }),
  platform('X01', 'what each way of killing a process does to it', {
    skip: 'Groups CPU and memory have these cases, with verdict P.',
  }),
  platform('X04', 'a hundred starts of isolates a second', { skip: 'Durations belong in bench; L16 starts thirty at once.' }),
  platform('X03', 'the time that dispose takes', {
    skip: 'Durations belong in bench; the neighbour is watched in every case that ends an isolate.',
  }),
  platform('X09', 'threads of guests at a lower priority', {
    skip: 'Not done: entries are ordered by the scheduler of the host.',
  }),
  platform('X10', 'builds with address and thread sanitizers', { skip: 'They need a build of Node.js of their own.' }),
  platform('X11', 'musl', { skip: 'The images and the addons are for glibc.' }),
]

t.test('platform', (t) => runCases(t, [...SANDBOX, ...STUCK_HOSTS, ...SOAK]))
