import { existsSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { HOST_FILES } from '../src/host-files.ts'
import { hostFolders } from '../src/host-program.ts'
import { groupLimits, requiredLayers } from '../src/host-sandbox.ts'
import { resolveSettings } from '../src/settings.ts'

const MEBIBYTE = 1024 * 1024

t.test('the system stops a host well after it should have stopped itself', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 192, max: 1_048_576 }), fc.integer({ min: 1, max: 10_000 }), (budgetMb, maxIsolates) => {
      const { memoryBytes, tasks } = groupLimits({ budgetBytes: budgetMb * MEBIBYTE, maxIsolates })
      return Number.isInteger(memoryBytes) && memoryBytes >= (budgetMb + 512) * MEBIBYTE && tasks > maxIsolates + 100
    }),
  )
})

t.test('a host reads addons, and nothing else of the program or of what is installed', async (t) => {
  const folders = hostFolders()
  for (const folder of folders) {
    t.ok(existsSync(folder), folder)
    t.notMatch(folder, /node_modules$/, 'not all that is installed')
  }
  const reads = (...path: string[]): boolean => folders.some((folder) => join(...path).startsWith(`${folder}/`))
  const root = join(HOST_FILES.main, '../../..')
  t.ok(reads(root, 'node_modules/isolated-vm/package.json'))
  for (const path of [
    'host/src/process.ts',
    'host/src/isolates/guest-isolate.ts',
    'packages/server/src/start-server.ts',
    'node_modules/fastify/package.json',
    'package.json',
    '.git/config',
  ])
    t.notOk(reads(root, path), path)
})

t.test('which layers are required', async (t) => {
  const required = (flags: Parameters<typeof resolveSettings>[0]) => requiredLayers(resolveSettings(flags, {}))
  t.equal(required({}), undefined)
  t.equal(required({ sandbox: 'off' }), undefined)
  t.strictSame(required({ sandbox: 'require' }), [])
  t.strictSame(required({ sandboxRequire: ['user', 'seccomp'] }), ['user', 'seccomp'])
  t.throws(() => required({ sandboxRequire: ['users'] }), { code: 'invalid-setting', message: /"users".*user-namespace/ })
  t.throws(() => required({ sandbox: 'on' }), { code: 'invalid-setting' })
})
