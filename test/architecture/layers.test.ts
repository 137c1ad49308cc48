/** Imports point down only, and siblings on one level do not import each other: ARCHITECTURE.md has the same table. */
import { globSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import t from 'tap'

const LAYERS: ReadonlyArray<readonly string[]> = [
  ['packages/core'],
  ['packages/storage'],
  [
    'packages/access',
    'packages/admission',
    'packages/billing',
    'packages/bundler',
    'packages/egress',
    'packages/gateway',
    'packages/ledger',
    'packages/registry',
    'packages/runtime',
    'packages/sandbox',
    'packages/telemetry',
    'packages/wire',
    'sdk',
  ],
  ['packages/fleet'],
  ['packages/server', 'host'],
  ['packages/cli', 'packages/embed'],
  ['examples', 'bench', 'test', 'pack'],
]

const root = join(import.meta.dirname, '../..')
const levelOf = new Map(LAYERS.flatMap((folders, level) => folders.map((folder) => [folder, level] as const)))
const IMPORT = /^(?:import|export)\b[^;'"]*?\bfrom '([^']+)'|\bimport\('([^']+)'\)|^import '([^']+)'/gm

interface Manifest {
  readonly name: string
  readonly dependencies?: Record<string, string>
  readonly devDependencies?: Record<string, string>
  readonly bin?: Record<string, string>
}

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8')) as Manifest
}

const folderOf = new Map([...levelOf.keys()].map((folder) => [manifestOf(folder).name, folder]))

function importsOf(folder: string): Array<{ file: string; specifier: string }> {
  return globSync(`${folder}/src/**/*.ts`, { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(IMPORT)].map((match) => ({
      file,
      specifier: match[1] ?? match[2] ?? match[3] ?? '',
    })),
  )
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/')
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '')
}

t.test('every workspace stands in the table', async (t) => {
  const { workspaces } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { workspaces: string[] }
  const folders = workspaces.flatMap((pattern) =>
    globSync(`${pattern}/package.json`, { cwd: root }).map((file) => file.slice(0, -'/package.json'.length)),
  )
  t.strictSame(folders.toSorted(), [...levelOf.keys()].toSorted())
})

for (const [folder, level] of levelOf) {
  t.test(`${folder} imports only what is below it, and names what it imports`, async (t) => {
    const manifest = manifestOf(folder)
    for (const { file, specifier } of importsOf(folder)) {
      // The bundler makes these for each function (packages/bundler/src/builtin-modules.ts).
      if (specifier.startsWith('carpool-node:')) continue
      if (specifier.startsWith('.') || isBuiltin(specifier)) {
        if (specifier.startsWith('.')) t.notMatch(join(file, '..', specifier), /^\.\./, `${file} stays in the repository`)
        if (specifier.startsWith('.'))
          t.ok(join(file, '..', specifier).startsWith(`${folder}/`), `${file} imports ${specifier} from its own workspace`)
        continue
      }
      const name = packageOf(specifier)
      if (name === manifest.name) continue
      t.hasProp({ ...manifest.dependencies }, name, `${file} imports ${name}, which is in the dependencies of ${folder}`)
      const target = folderOf.get(name)
      if (target !== undefined) t.ok((levelOf.get(target) ?? 0) < level, `${file} may import ${target}`)
    }
  })
}
