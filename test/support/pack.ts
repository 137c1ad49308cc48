/**
 * Packs the command as it is published, for the tests that start servers: its start takes half the CPU time of one from the sources, and it is what
 * users start. Part of `npm run test:unit`.
 */
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PUBLISHED } from '../../pack/src/published.ts'
import { readManifest, ROOT, WORKSPACES } from '../../pack/src/workspaces.ts'
import { writeCode } from '../../pack/src/write-code.ts'
import { PACKED } from './command.ts'

const published = PUBLISHED.find(({ name }) => name === 'carpool')!
const { imported, needed } = await writeCode(published, PACKED)
const { version } = readManifest('.')
writeFileSync(join(PACKED, 'package.json'), JSON.stringify({ name: published.name, version, type: 'module' }))
for (const name of imported) linkOwnVersion(name)
// A host without a sandbox is not let past a folder `node_modules` on the way to what it needs.
for (const name of Object.keys(needed))
  cpSync(join(ROOT, 'node_modules', name), join(PACKED, 'node_modules', name), { recursive: true })

/** What a workspace has in another version than the rest is in a folder of its own. */
function linkOwnVersion(name: string): void {
  const own = [...WORKSPACES.values()].map((folder) => join(ROOT, folder, 'node_modules', name)).find((one) => existsSync(one))
  if (own === undefined) return
  const link = join(PACKED, 'node_modules', name)
  mkdirSync(dirname(link), { recursive: true })
  symlinkSync(own, link)
}
