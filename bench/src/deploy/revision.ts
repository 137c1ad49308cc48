import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Long enough that calls are under way whenever a revision is replaced. */
const PAUSE_MS = 20

const handler = (revision: number): string => `async fetch() {
    const before = atLoad
    await new Promise((resolve) => setTimeout(resolve, ${PAUSE_MS}))
    return new Response([atLoad, before, ${revision}].join(' '))
  }`

/** Writes a revision as a user would: its number stands in the handler, and in a module that it imports. */
export async function writeRevision(folder: string, revision: number): Promise<string> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'number.js'), `export const atLoad = ${revision}\n`)
  await writeFile(
    join(folder, 'index.js'),
    `import { atLoad } from './number.js'\n\nexport default {\n  ${handler(revision)},\n}\n`,
  )
  return folder
}

/** The same as a bundle. */
export function revisionBundle(revision: number): string {
  return `(() => {\n  const atLoad = ${revision}\n  return { default: { ${handler(revision)} } }\n})`
}
