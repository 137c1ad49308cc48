import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, sep } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  announceServer,
  findServers,
  readProcess,
  serverAt,
  serverFor,
  type ServerAddress,
  type ServerAnnouncement,
} from '../src/discovery/index.ts'

function stateIn(test: Test) {
  const folder = join(test.testdir(), 'state')
  const env = { CARPOOL_STATE_DIR: folder }
  return {
    folder,
    env,
    announce: (ports: { data: number; admin: number }, more: Partial<ServerAnnouncement> = {}) => {
      const announcement = announceServer(
        {
          url: `http://127.0.0.1:${ports.data}`,
          adminUrl: `http://127.0.0.1:${ports.admin}`,
          token: `token-of-${ports.admin}`,
          pid: process.pid,
          dataDir: '/data',
          ...more,
        },
        env,
      )
      test.teardown(() => announcement.withdraw())
      return announcement
    },
    find: () => findServers(env),
    findAt: (url: string) => serverAt(findServers(env), url),
  }
}

/** The id of a process that has ended. */
function endedPid(): number {
  return spawnSync(process.execPath, ['--version']).pid
}

t.test('an announced server is found with all that is needed to reach it', async (t) => {
  const state = stateIn(t)
  t.strictSame(state.find(), [])
  state.announce({ data: 8080, admin: 8081 })
  const [found] = state.find()
  t.match(found, {
    url: 'http://127.0.0.1:8080',
    adminUrl: 'http://127.0.0.1:8081',
    token: 'token-of-8081',
    pid: process.pid,
    dataDir: '/data',
  })
  t.notOk(Number.isNaN(Date.parse(found?.startedAt ?? '')))
})

t.test('the announcement can be read by its user alone and is written at once', async (t) => {
  const state = stateIn(t)
  const { file } = state.announce({ data: 1, admin: 2 })
  t.equal(statSync(file ?? '').mode & 0o777, 0o600)
  t.equal(statSync(state.folder).mode & 0o777, 0o700)
  t.equal(readdirSync(state.folder).length, 1, 'no unfinished file is left')
})

t.test('a withdrawn server is not found, and withdrawing twice is harmless', async (t) => {
  const state = stateIn(t)
  const other = state.announce({ data: 1, admin: 2 })
  const announcement = state.announce({ data: 3, admin: 4 })
  announcement.withdraw()
  announcement.withdraw()
  t.match(state.find(), [{ adminUrl: 'http://127.0.0.1:2' }])
  t.equal(state.find().length, 1)
  other.withdraw()
  t.strictSame(state.find(), [])
})

t.test('a server is found by either of its URLs, however they are spelled', async (t) => {
  const state = stateIn(t)
  state.announce({ data: 3000, admin: 3001 })
  state.announce({ data: 4000, admin: 4001 }, { url: 'http://0.0.0.0:4000' })
  for (const url of ['http://127.0.0.1:3000', 'http://127.0.0.1:3001/', 'http://localhost:3000/', 'http://[::1]:3001']) {
    t.equal(state.findAt(url)?.adminUrl, 'http://127.0.0.1:3001', url)
  }
  t.equal(state.findAt('http://localhost:4000')?.adminUrl, 'http://127.0.0.1:4001')
  for (const url of [
    'http://127.0.0.1:3002',
    'https://127.0.0.1:3000',
    'http://example.com:3000',
    'http://127.0.0.1:3000/x',
    'no url',
  ]) {
    t.equal(state.findAt(url), undefined, url)
  }
})

t.test('of several servers the one that started last comes first', async (t) => {
  const state = stateIn(t)
  const startAt = (ports: { data: number; admin: number }, startedAt: string) => {
    const file = state.announce(ports).file ?? ''
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), startedAt }))
  }
  startAt({ data: 1, admin: 2 }, '2026-01-02T00:00:00.000Z')
  startAt({ data: 3, admin: 4 }, '2026-01-03T00:00:00.000Z')
  startAt({ data: 8080, admin: 8081 }, '2026-01-01T00:00:00.000Z')
  t.strictSame(
    state.find().map(({ token }) => token),
    ['token-of-4', 'token-of-2', 'token-of-8081'],
  )
})

t.test('the data folder is announced as the system names the way to it', async (t) => {
  const state = stateIn(t)
  const root = realpathSync(dirname(state.folder))
  for (const folder of ['disk', 'real']) mkdirSync(join(root, folder))
  symlinkSync(join(root, 'real'), join(root, 'link'))
  symlinkSync(join(root, 'disk'), join(root, 'real', 'data'))
  state.announce({ data: 1, admin: 2 }, { dataDir: join(root, 'link', 'data') })
  t.equal(state.find()[0]?.dataDir, join(root, 'real', 'data'), 'but where the folder itself leads is no concern of it')
})

t.test('the entry of an ended process is ignored and removed', async (t) => {
  const state = stateIn(t)
  const { file } = state.announce({ data: 1, admin: 8081 }, { pid: endedPid() })
  state.announce({ data: 3, admin: 4 })
  t.notOk(existsSync(file ?? ''), 'by the next announcement')
  const { file: second } = state.announce({ data: 1, admin: 8081 }, { pid: endedPid() })
  t.match(state.find(), [{ adminUrl: 'http://127.0.0.1:4' }])
  t.notOk(existsSync(second ?? ''), 'by the next look-up')
})

t.test(
  'the entry of a killed process that its parent has not asked about is ignored',
  { skip: !existsSync('/proc/self/stat') },
  async (t) => {
    const state = stateIn(t)
    // The shell becomes `sleep`, which never asks about the child that the shell leaves to it.
    const parent = spawn('/bin/sh', ['-c', '/bin/sh -c "echo \\$\\$" & exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] })
    t.teardown(() => parent.kill('SIGKILL'))
    const [line] = (await once(parent.stdout.setEncoding('utf8'), 'data')) as [string]
    const pid = Number(line)
    while (!/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))) await setImmediate()
    state.announce({ data: 1, admin: 2 }, { pid })
    t.strictSame(state.find(), [])
  },
)

t.test(
  'the entry of an ended process whose id another process now has is ignored',
  { skip: !existsSync('/proc/self/stat') },
  async (t) => {
    const state = stateIn(t)
    const { file = '' } = state.announce({ data: 1, admin: 2 })
    writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), processMark: '1' }))
    t.strictSame(state.find(), [])
    t.notOk(existsSync(file))
  },
)

t.test('files that are no announcements are neither read nor removed', async (t) => {
  const state = stateIn(t)
  state.announce({ data: 1, admin: 2 })
  const foreign = ['server-1-0123456789ab.json', 'notes.json', 'server-2-0123456789ab.json']
  writeFileSync(join(state.folder, foreign[0] ?? ''), '{"pid": 1')
  writeFileSync(join(state.folder, foreign[1] ?? ''), JSON.stringify({ pid: endedPid(), adminUrl: 'http://127.0.0.1:8081' }))
  writeFileSync(join(state.folder, foreign[2] ?? ''), JSON.stringify({ pid: endedPid() }))
  t.match(state.find(), [{ adminUrl: 'http://127.0.0.1:2' }])
  for (const name of foreign) t.ok(existsSync(join(state.folder, name)), name)
})

t.test('the state folder is the XDG one, else the one in the home folder', async (t) => {
  const home = t.testdir()
  const server = { url: 'http://127.0.0.1:1', adminUrl: 'http://127.0.0.1:2', token: 't', pid: process.pid, dataDir: '/data' }
  const cases = [
    [{ HOME: home, XDG_STATE_HOME: join(home, 'xdg') }, join(home, 'xdg', 'carpool', 'servers')],
    [{ HOME: home, XDG_STATE_HOME: 'relative' }, join(home, '.local', 'state', 'carpool', 'servers')],
    [{ HOME: home }, join(home, '.local', 'state', 'carpool', 'servers')],
  ] as const
  for (const [env, folder] of cases) {
    const announcement = announceServer(server, env)
    t.equal(dirname(announcement.file ?? ''), folder)
    t.match(findServers(env), [{ token: 't' }])
    announcement.withdraw()
  }
})

t.test('a folder that cannot be written to leaves the server without an announcement', async (t) => {
  const root = t.testdir({ file: '' })
  const server = { url: 'http://127.0.0.1:1', adminUrl: 'http://127.0.0.1:2', token: 't', pid: process.pid, dataDir: '/data' }
  const announcement = announceServer(server, { CARPOOL_STATE_DIR: join(root, 'file', 'state') })
  t.equal(announcement.file, undefined)
  announcement.withdraw()
})

t.test(
  'a process is read past a name with spaces and brackets',
  { skip: !existsSync('/proc') && 'there is no /proc' },
  async (t) => {
    const script = `process.title = 'a) (b c'; console.log('named'); process.stdin.resume()`
    const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    await once(child.stdout, 'data')
    const pid = child.pid ?? 0
    t.match(readProcess(pid), { pid, name: 'a) (b c', state: /^[RSD]$/, parentPid: process.pid, groupId: pid, sessionId: pid })
    child.stdin.end()
    await once(child, 'exit')
    t.equal(readProcess(pid), undefined)
  },
)

/** Servers with these data folders. The ports and the times are such that to go by them would show. */
function servers(...dataDirs: readonly string[]): readonly ServerAddress[] {
  return dataDirs.map((dataDir, index) => ({
    url: `http://127.0.0.1:${8080 + index * 10}`,
    adminUrl: `http://127.0.0.1:${8081 + index * 10}`,
    token: 't',
    pid: index + 1,
    dataDir,
    startedAt: `2026-01-0${index + 1}T00:00:00.000Z`,
  }))
}

const chosen = (folder: string, ...dataDirs: readonly string[]): string | undefined =>
  serverFor(servers(...dataDirs), folder)?.dataDir

t.test('the only server is meant everywhere, and none is if there is none', async (t) => {
  for (const folder of ['/', '/elsewhere', '/work/app']) t.equal(chosen(folder, '/work/app/.carpool'), '/work/app/.carpool')
  t.equal(chosen('/work'), undefined)
})

t.test('in a folder that has the data of one in it, and below, that one is meant', async (t) => {
  for (const folder of ['/work/app', '/work/app/src', '/work/app/src/deep', '/work/app/.carpool', '/work/app/.carpool/logs']) {
    t.equal(chosen(folder, '/other/.carpool', '/work/app/.carpool'), '/work/app/.carpool', folder)
  }
})

t.test('the nearest one wins', async (t) => {
  const all = ['/work/.carpool', '/work/app/.carpool', '/work/app/.carpool/inner/.carpool'] as const
  t.equal(chosen('/work/other', ...all), all[0])
  t.equal(chosen('/work/app/src', ...all), all[1])
  t.equal(chosen('/work/app/.carpool', ...all), all[1])
  t.equal(chosen('/work/app/.carpool/inner', ...all), all[2])
})

t.test('in the data folder of one it is that one, though another lies beside it', async (t) => {
  t.equal(chosen('/work/one/logs', '/work/one', '/work/two'), '/work/one')
  t.equal(chosen('/work', '/work/one', '/work/two'), undefined, 'but two in the same folder are not told apart')
  t.equal(chosen('/work/one', '/work/.carpool', '/work/two', '/work/one'), '/work/one')
})

t.test('what is not near is not chosen', async (t) => {
  const cases: ReadonlyArray<readonly [folder: string, dataDir: string]> = [
    ['/work', '/work/app/.carpool'],
    ['/work/application', '/work/app/.carpool'],
    ['/workshop', '/work/app'],
    ['/home', '/work/app/.carpool'],
    ['/home', '/data'],
    ['/', '/data'],
  ]
  for (const [folder, dataDir] of cases) {
    // The other one lies at the front, behind, and nowhere near.
    t.equal(chosen(folder, dataDir, '/far/away/.carpool'), undefined, `${dataDir} in ${folder}`)
    t.equal(chosen(folder, '/far/away/.carpool', dataDir), undefined, `${dataDir} in ${folder}`)
  }
  t.equal(chosen('/data/logs', '/data', '/far/away/.carpool'), '/data', 'in the data folder itself it is')
})

const part = fc.constantFrom('a', 'b', 'ab')
const path = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => sep + parts.join(sep))

t.test('the order of the servers does not matter', async () => {
  fc.assert(
    fc.property(fc.uniqueArray(path, { minLength: 2, maxLength: 5 }), path, (dataDirs, folder) => {
      return chosen(folder, ...dataDirs) === chosen(folder, ...dataDirs.toReversed())
    }),
  )
})

t.test('of several it is one that is at hand, and no other is nearer at hand', async () => {
  const at = (folder: string, dataDir: string): boolean =>
    folder === dataDir || (folder === dirname(dataDir) && dirname(dataDir) !== sep)
  fc.assert(
    fc.property(fc.uniqueArray(path, { minLength: 2, maxLength: 5 }), path, (dataDirs, folder) => {
      // As somebody would look for it: from folder to folder, upwards.
      let expected: string | undefined
      for (let looked = folder; looked !== sep && expected === undefined; looked = dirname(looked)) {
        const found = dataDirs.filter((dataDir) => at(looked, dataDir))
        if (found.length > 1) break
        expected = found[0]
      }
      return chosen(folder, ...dataDirs) === expected
    }),
  )
})

t.test('a URL picks whatever the folder says', async (t) => {
  const all = servers('/a/.carpool', '/b/.carpool')
  t.equal(serverAt(all, 'http://localhost:8091/')?.dataDir, '/b/.carpool')
  t.equal(serverAt(all, 'http://127.0.0.1:8080')?.dataDir, join('/a', '.carpool'))
  t.equal(serverAt(all, 'http://127.0.0.1:1'), undefined)
})

const server = { url: 'http://127.0.0.1:1', adminUrl: 'http://127.0.0.1:2', token: 't', pid: process.pid, dataDir: '/data' }

t.test('without a home folder to write to, a private folder in the temp folder is used, and only if it is safe', async (t) => {
  const root = t.testdir({ file: '', tmp: {}, elsewhere: {} })
  const before = process.env['TMPDIR']
  process.env['TMPDIR'] = join(root, 'tmp')
  t.teardown(() => {
    if (before === undefined) delete process.env['TMPDIR']
    else process.env['TMPDIR'] = before
  })
  const env = { HOME: join(root, 'file') }

  const announcement = announceServer(server, env)
  const folder = dirname(announcement.file ?? '')
  t.equal(dirname(folder), tmpdir())
  t.match(findServers(env), [{ token: 't' }])

  chmodSync(folder, 0o777)
  t.strictSame(findServers(env), [], 'others can write to it')
  t.equal(announceServer(server, env).file, undefined)
  t.ok(existsSync(announcement.file ?? ''), 'and nothing is touched there')

  rmSync(folder, { recursive: true })
  mkdirSync(join(root, 'elsewhere'), { recursive: true, mode: 0o700 })
  symlinkSync(join(root, 'elsewhere'), folder)
  t.equal(announceServer(server, env).file, undefined, 'a link to another folder')
})
