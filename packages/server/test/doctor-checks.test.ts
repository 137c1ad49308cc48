import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { checkAddon, checkDataFolder, checkNode, checkPort, checkSecretKey } from '../src/hosts/examine.ts'
import { requireAddon } from '../src/hosts/host-files.ts'
import { resolveSettings } from '../src/settings/index.ts'

t.test('Node.js must be new enough', async (t) => {
  t.match(checkNode('26.10.0'), { state: 'ok' })
  t.match(checkNode('27.0.0-nightly'), { state: 'ok' })
  t.match(checkNode('24.1.0'), { state: 'failed', detail: 'Node.js 26 or newer is needed, this is 24.1.0.' })
})

t.test('without an addon for the platform no server starts, and it is said in a line what to do', async (t) => {
  t.match(checkAddon('linux', 'x64', process.versions.modules), { state: 'ok' })
  const line =
    /^The addon of host processes is not built for sunos-sparc and Node\.js with ABI 1: `npm run build:addon` builds it, with a C\+\+ compiler.*$/
  t.match(checkAddon('sunos', 'sparc', '1'), { state: 'failed', detail: line })
  requireAddon()
  const elsewhere = { ...process, platform: 'sunos', arch: 'sparc', versions: { ...process.versions, modules: '1' } }
  t.throws(() => requireAddon(elsewhere as unknown as NodeJS.Process), { code: 'platform-unsupported', message: line })
})

t.test('the data folder is there, or can be made, or cannot be used', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'carpool-test-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'file')
  writeFileSync(file, '')
  t.match(checkDataFolder(folder), { state: 'ok', detail: `${folder} can be written.` })
  t.match(checkDataFolder(join(folder, 'a/b')), { state: 'ok', detail: `${join(folder, 'a/b')} can be made.` })
  t.match(checkDataFolder(join(file, 'data')), { state: 'failed', detail: `${file} is not a folder.` })
})

t.test('a key of secrets is there or can be made, or no secret could be set', async (t) => {
  const data = t.testdir({ garbage: 'hello' })
  t.strictSame(checkSecretKey({ data, secretKeyFile: '' }), [])
  const elsewhere = (file: string) => checkSecretKey({ data, secretKeyFile: join(data, file) })
  t.match(elsewhere('key'), [{ name: 'secret key', state: 'ok', detail: /can be made\.$/ }])
  t.match(elsewhere('garbage'), [{ state: 'warning', detail: /hold 32 bytes in base64\. \(--secret-key-file\)$/ }])
  t.match(elsewhere('none/key'), [{ state: 'warning', detail: /cannot be made: ENOENT/ }])
})

t.test('a port that somebody listens on is a warning, one that nobody may have a failure', async (t) => {
  const server = createServer().listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const port = String((server.address() as AddressInfo).port)
  t.match(await checkPort('port', resolveSettings({ port }, {})), {
    state: 'warning',
    detail: `Somebody listens on 127.0.0.1:${port}`,
  })
  t.match(await checkPort('adminPort', resolveSettings({ adminPort: port }, {})), { name: 'admin port', state: 'warning' })
  t.match(await checkPort('port', resolveSettings({ port: '0' }, {})), { state: 'ok', detail: 'A free one will be picked.' })
  t.match(await checkPort('port', resolveSettings({ host: '192.0.2.1', port: '0' }, {})), {
    state: 'failed',
    detail: /EADDRNOTAVAIL/,
  })
})
