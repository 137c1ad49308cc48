/**
 * `npm run build:packages [-- folder]`: makes the packages that are published, each as a folder and as a tarball. Default
 * folder: `out`.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { copyTypes } from './copy-types.ts'
import { PUBLISHED, type Published } from './published.ts'
import { writeCode } from './write-code.ts'
import { pinnedVersion, readManifest, ROOT } from './workspaces.ts'

const out = resolve(process.argv[2] ?? join(ROOT, 'out'))
mkdirSync(out, { recursive: true })
const { version } = readManifest('.')
compile()
for (const published of PUBLISHED) console.log(await makePackage(published))

/** Types come from what the compiler writes beside the sources. */
function compile(): void {
  const compiler = createRequire(import.meta.url).resolve('typescript/package.json')
  const folders = PUBLISHED.map(({ source }) => source)
  execFileSync(process.execPath, [join(compiler, '../bin/tsc'), '-b', ...folders], {
    cwd: ROOT,
    stdio: ['ignore', process.stderr, 'inherit'],
  })
}

/** @returns the path of its tarball */
async function makePackage(published: Published): Promise<string> {
  const { name, source, entries, hasServer } = published
  const folder = join(out, name.replace('@carpool/', 'carpool-'))
  const { imported, needed } = await writeCode(published, folder)
  const { types, named } = copyTypes(entries['index'] ?? '', folder)
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  cpSync(join(ROOT, source, 'README.md'), join(folder, 'README.md'))
  // What functions and their configurations import without installing it.
  const ofBundler = hasServer ? { '@carpool/sdk': version } : {}
  const pinned = Object.fromEntries([...imported, ...named].map((one) => [one, pinnedVersion(one)]))
  const dependencies = sorted({ ...pinned, ...needed, ...ofBundler })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifestOf(published, types, dependencies), null, 2)}\n`)
  return packed(folder)
}

function manifestOf({ name, source, engine }: Published, types: string, dependencies: Readonly<Record<string, string>>): object {
  const { description, license, sideEffects, bin, optionalDependencies } = readManifest(source)
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    ...(sideEffects !== undefined && { sideEffects }),
    engines: { node: engine },
    exports: { '.': { types: `./${types}`, default: './dist/index.js' }, './package.json': './package.json' },
    ...(bin !== undefined && { bin }),
    ...(Object.keys(dependencies).length > 0 && { dependencies }),
    ...(optionalDependencies !== undefined && { optionalDependencies }),
  }
}

function sorted(dependencies: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(dependencies).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

function packed(folder: string): string {
  const args = ['pack', folder, '--json', '--ignore-scripts', '--pack-destination', out]
  const [{ filename }] = JSON.parse(execFileSync('npm', args, { cwd: out, encoding: 'utf8' })) as [{ filename: string }]
  const tarball = join(out, filename.replace('@carpool/', 'carpool-'))
  if (!existsSync(tarball)) throw new Error(`npm made no ${tarball}.`)
  return tarball
}
