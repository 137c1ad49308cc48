/**
 * What a server says of its sandbox when it is ready, on this machine and where something else stands in the place of
 * bubblewrap.
 */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { ServerInfo, StatusInfo } from '@carpool/core'
import { LAYER_NAMES, publicSandboxInfo, sandboxSentences } from '../../packages/sandbox/src/index.ts'
import { CARPOOL, ROOT, startCarpool, untilEnd } from '../support/command.ts'
import { runClean } from '../support/run-clean.ts'
import { temporaryFolder } from '../support/server.ts'
import { doctor } from './support/doctor.ts'

const PORTS = ['--port', '0', '--admin-port', '0']

/** A server that is ready, as a user would start it. */
async function startPlain(t: Test, flags: readonly string[] = [], before: readonly string[] = []) {
  const [dataDir, stateDir] = [temporaryFolder(t), temporaryFolder(t)]
  const env = { CARPOOL_STATE_DIR: stateDir, CARPOOL_STANDBY_HOSTS: '0' }
  const variables = Object.entries({ PATH: process.env['PATH'] ?? '', ...env }).map(([name, value]) => `${name}=${value}`)
  const command = [
    ...before,
    'env',
    '-i',
    ...variables,
    process.execPath,
    CARPOOL,
    'serve',
    ...PORTS,
    '--data',
    dataDir,
    ...flags,
  ]
  const child = spawn(command[0]!, command.slice(1), { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = untilEnd(child)
  t.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  let printed = ''
  for await (const line of createInterface({ input: child.stdout })) {
    printed += `${line}\n`
    if (line.startsWith('Stop with')) break
  }
  const adminUrl = /control plane +(\S+)/.exec(printed)?.[1]
  if (adminUrl === undefined) throw new Error(`The server did not start: ${printed}${(await ended).stderr}`)
  const token = readFileSync(join(dataDir, 'admin-token'), 'utf8').trim()
  const ask = async <T>(path: string): Promise<T> =>
    (await (await fetch(adminUrl + path, { headers: { authorization: `Bearer ${token}` } })).json()) as T
  return {
    /** Lines of its output that are about the sandbox. */
    lines: printed.split('\n').filter((line) => line.startsWith('Sandbox: ')),
    adminUrl,
    ask,
    sandbox: (await ask<ServerInfo>('/v1/server')).sandbox,
    carpool: (...args: readonly string[]) => untilEnd(startCarpool(args, env)),
    /** Stops it. @returns the messages that it has logged */
    stop: async (): Promise<readonly string[]> => {
      child.kill('SIGTERM')
      const { stderr } = await ended
      return stderr.split('\n').flatMap((text) => (text.startsWith('{') ? [(JSON.parse(text) as { msg: string }).msg] : []))
    },
  }
}

t.test('a server says the same of its sandbox wherever it says it, and doctor finds the same', async (t) => {
  const { lines, adminUrl, ask, sandbox, carpool, stop } = await startPlain(t)
  const line = sandboxSentences(sandbox).join(' ')
  t.strictSame(lines, [line], 'what is printed')
  t.strictSame((await ask<StatusInfo>('/v1/status')).sandbox, sandbox)
  const readiness = await fetch(`${adminUrl}/readyz`)
  t.equal(readiness.status, 200, 'whatever is off')
  t.strictSame(await readiness.json(), { status: 'ready', reasons: [], sandbox: publicSandboxInfo(sandbox) })
  t.ok((await carpool('status')).stdout.split('\n').includes(line), 'carpool status')
  t.strictSame((JSON.parse((await carpool('status', '--json')).stdout) as StatusInfo).sandbox, sandbox)
  t.strictSame(
    (await stop()).filter((message) => message.startsWith('Sandbox: ')),
    [line],
    'the log',
  )

  const found = await doctor()
  // The control groups of version 2 are divided by a server, and only looked at by doctor.
  const missing = found.layers.filter(({ name, state }) => state !== 'on' && !name.startsWith('cgroup-'))
  const off = sandbox.off.flatMap(({ layers }) => layers)
  t.strictSame(off.filter((name) => !name.startsWith('cgroup-')).toSorted(), missing.map(({ name }) => name).toSorted())
  t.equal(sandbox.on + off.length, LAYER_NAMES.length)
  for (const { name, why, remedy } of missing) for (const text of [name, why, remedy]) t.match(line, text)
})

t.test('a sandbox that is switched off is reported as that', async (t) => {
  const { lines } = await startPlain(t, ['--sandbox', 'off'])
  t.match(lines, [
    /^Sandbox: 3 of 13 layers are on\. user, .*, cgroup-tasks are off: The sandbox is switched off\. Set sandbox to /,
  ])
})

const installed = ['/usr/bin/bwrap', '/bin/bwrap', '/usr/sbin/bwrap', '/sbin/bwrap', '/usr/local/bin/bwrap'].find(existsSync)
const PLACE = '/usr/local/bin'

/** A command in front of another, for which a program of lines of shell is where bubblewrap is looked for. */
function withStandIn(t: Test, lines: string, mode = 0o755): readonly string[] {
  const folder = temporaryFolder(t)
  chmodSync(folder, 0o755)
  const path = join(folder, 'bwrap')
  writeFileSync(path, `#!/bin/sh\n${lines}\n`)
  chmodSync(path, mode)
  const [source, target] = installed === undefined ? [folder, PLACE] : [path, installed]
  return ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" "$1" && shift && exec "$@"', source, target]
}

async function standInProblem(t: Test): Promise<string | false> {
  if (process.getuid?.() !== 0) return 'only root can put a program in the place of bubblewrap'
  if (installed === undefined && dirname(process.execPath) === PLACE) return 'Node.js would be covered up'
  const [command = '', ...args] = withStandIn(t, ':')
  const { code } = await untilEnd(spawn(command, [...args, 'true']).on('error', () => {}))
  return code !== 0 && 'nothing can be mounted here'
}

const VERSION = '[ "$1" = --version ] && echo bubblewrap 0.8.0 && exit'
const CASES: ReadonlyArray<readonly [name: string, lines: string, why: RegExp, remedy: RegExp, mode?: number]> = [
  ['may not be run', VERSION, /is there, but user 60999 may not run it \(Permission denied\)/, /Let everyone run bwrap/, 0o644],
  ['is too old', 'echo bubblewrap 0.2.0', /is there, but it is too old: it is 0\.2\.0/, /Install bubblewrap 0\.3\.1 or newer/],
  ['hangs', 'sleep 600', /is there, but it hangs/, /apt install --reinstall/],
  [
    'is not permitted to do its work',
    `${VERSION}\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1`,
    /It was tried and does not work here: bwrap: setting up uid map: Permission denied/,
    /docs\/sandbox\.md says how to let it/,
  ],
  [
    'tells its version and then hangs',
    `${VERSION}\nsleep 600`,
    /does not work here: It did not answer within 20 s\./,
    /apt install --reinstall/,
  ],
]

t.test('where bubblewrap is not what it should be, that is reported, and the server is ready in bounded time', async (t) => {
  const skip = await standInProblem(t)
  for (const [name, lines, why, remedy, mode] of CASES) {
    t.test(`one that ${name}`, { skip }, async (t) => {
      const { lines: printed, sandbox } = await startPlain(t, ['--host-uid', '60999'], withStandIn(t, lines, mode))
      const group = sandbox.off.find(({ layers }) => layers.includes('network-namespace'))
      t.match(group, { why, remedy })
      for (const layer of ['user-namespace', 'mount-namespace', 'pid-namespace', 'ipc-namespace', 'seccomp'])
        t.ok(group?.layers.includes(layer), layer)
      t.equal(printed.length, 1)
      for (const text of [why, remedy]) t.match(printed[0], text)
      t.notMatch(printed[0], 'not installed')
    })
  }
  t.test('and a server that insists on its layers does not start', { skip }, async (t) => {
    const command = [CARPOOL, 'serve', '--json', ...PORTS, '--data', temporaryFolder(t), '--sandbox', 'require']
    const { code, stdout } = await runClean(command, { before: withStandIn(t, 'echo bubblewrap 0.2.0') })
    t.equal(code, 1)
    const { error } = JSON.parse(stdout) as { error: { code: string; detail: string } }
    t.equal(error.code, 'sandbox-unavailable')
    t.match(error.detail, /mount-namespace \(.* is too old.* Install bubblewrap 0\.3\.1 or newer\./)
  })
})
