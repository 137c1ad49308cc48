import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { bundleCode } from './bundle-code.ts'
import type { Published } from './published.ts'
import { writeServerFiles } from './server-files.ts'
import { ROOT } from './workspaces.ts'

/** What of other people's a package needs. */
interface ThirdParty {
  /** Packages that its code imports. */
  readonly imported: readonly string[]
  /** Packages that what is in its folder needs, with their versions. */
  readonly needed: Readonly<Record<string, string>>
}

/** Writes all that a package runs to its folder, in the place of what is there. */
export async function writeCode(published: Published, folder: string): Promise<ThirdParty> {
  const { target, hasServer, files = {} } = published
  rmSync(folder, { recursive: true, force: true })
  const imported = await bundleCode(published, folder)
  const needed = hasServer ? await writeServerFiles(folder, target) : {}
  for (const [place, from] of Object.entries(files)) cpSync(join(ROOT, from), join(folder, place), { recursive: true })
  return { imported, needed }
}
