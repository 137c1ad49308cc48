import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { HOST_FILES, hostFolders, hostPrograms, packageFolders } from '../src/hosts/host-files.ts'
import { groupLimits, requiredLayers } from '../src/hosts/host-sandbox.ts'
import { resolveSettings } from '../src/settings/index.ts'

t.test('the program of a host is one module: what it imports is of Node.js, or has an addon', async (t) => {
  const { host } = await hostPrograms()
  const imported = [...host.matchAll(/^import .*?from "(.*?)";$/gm)].map(([, source = '']) => source)
  t.ok(imported.some((source) => /^file:.*isolated-vm\.js$/.test(source)))
  for (const source of imported) t.match(source, /^(?:node:|file:.*isolated-vm\.js$)/)
})

t.test('nothing gets into it from the folder that the server is started in', async (t) => {
  const folder = t.testdir({ other: { 'package.json': '{"name":"@carpool/wire","main":"index.js"}', 'index.js': '"other"' } })
  const host = `${relative(folder, dirname(dirname(HOST_FILES.main)))}/`
  // As Yarn writes it: the package of the host is where it is, and what it depends on is somewhere else.
  const packages = [
    [null, [[null, { packageLocation: './', packageDependencies: [], linkType: 'SOFT' }]]],
    [
      '@carpool/host-process',
      [['0', { packageLocation: host, packageDependencies: [['@carpool/wire', '0']], linkType: 'SOFT' }]],
    ],
    ['@carpool/wire', [['0', { packageLocation: './other/', packageDependencies: [], linkType: 'SOFT' }]]],
  ]
  writeFileSync(join(folder, '.pnp.data.json'), JSON.stringify({ packageRegistryData: packages, dependencyTreeRoots: [] }))
  const before = process.cwd()
  t.teardown(() => process.chdir(before))
  const { host: elsewhere } = await hostPrograms()
  process.chdir(folder)
  t.equal((await hostPrograms()).host, elsewhere)
})

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

t.test('a package is loaded whose dependency is not in the first folder that is looked in', async (t) => {
  const root = t.testdir({
    node_modules: { loader: { 'package.json': '{}', 'index.js': 'module.exports = "loaded"' } },
    host: {
      node_modules: {},
      addon: { 'package.json': '{"dependencies":{"loader":"1"}}', 'index.js': 'console.log(require("loader"))' },
    },
  })
  const addon = join(root, 'host/addon')
  const { folders, lookups } = packageFolders(addon)
  const load = (paths: readonly string[]) => {
    const flags = paths.map((path) => `--allow-fs-read=${path}/*`)
    return spawnSync(process.execPath, ['--permission', ...flags, join(addon, 'index.js')], { encoding: 'utf8', env: {} })
  }
  t.match(load(folders).stderr, /ERR_ACCESS_DENIED.*node_modules.loader/s)
  t.equal(load([...folders, ...lookups]).stdout, 'loaded\n')
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
