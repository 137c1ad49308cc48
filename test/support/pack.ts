/**
 * Packs the command as it is published, for the tests that start servers: its start takes half the CPU time of one from the
 * sources, and it is what users start. And bundles tap. Part of `npm run test:unit`.
 */
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PUBLISHED } from '../../pack/src/published.ts'
import { readManifest, ROOT, WORKSPACES } from '../../pack/src/workspaces.ts'
import { writeCode } from '../../pack/src/write-code.ts'
import { PACKED } from './command.ts'
import { bundleTap } from './tap-bundle.ts'

const tap = bundleTap()
const published = PUBLISHED.find(({ name }) => name === 'carpool')!
const { imported } = await writeCode(published, PACKED)
const { version } = readManifest('.')
writeFileSync(join(PACKED, 'package.json'), JSON.stringify({ name: published.name, version, type: 'module' }))
for (const name of imported) linkOwnVersion(name)
// As npm makes it where versions differ: what hosts load is then looked for there first.
mkdirSync(join(PACKED, 'node_modules'), { recursive: true })
await tap

/** What a workspace has in another version than the rest is in a folder of its own. */
function linkOwnVersion(name: string): void {
  const own = [...WORKSPACES.values()].map((folder) => join(ROOT, folder, 'node_modules', name)).find((one) => existsSync(one))
  if (own === undefined) return
  const link = join(PACKED, 'node_modules', name)
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(own, link)
}
