import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { announceServer, findServers } from '../src/discovery/index.ts'

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
