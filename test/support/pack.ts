/**
 * Packs the command as it is published, for the tests that start servers: its start takes half the CPU time of one from the sources, and it is what
 * users start. Part of `npm run test:unit`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PUBLISHED } from '../../pack/src/published.ts'
import { readManifest } from '../../pack/src/workspaces.ts'
import { writeCode } from '../../pack/src/write-code.ts'
import { PACKED } from './command.ts'

for (const published of PUBLISHED.filter(({ name }) => name === 'carpool')) {
  await writeCode(published, PACKED)
  const { version } = readManifest('.')
  writeFileSync(join(PACKED, 'package.json'), JSON.stringify({ name: published.name, version, type: 'module' }))
}
