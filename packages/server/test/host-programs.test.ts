import { writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'
import { HOST_FILES } from '../src/host-files.ts'
import { hostPrograms } from '../src/host-programs.ts'

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
