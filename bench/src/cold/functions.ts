import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Writes a function into a folder of its own. Each has code of its own, so that none profits from the code cache of another. */
export async function writeCountingFunction(parent: string, name: string): Promise<string> {
  const folder = join(parent, name)
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'index.js'), sourceOf(name))
  return folder
}

/** The answer is how many calls the instance has had, so that it tells whether the isolate was new. */
function sourceOf(name: string): string {
  return `// ${name}
let calls = 0

export default {
  fetch() {
    calls++
    return new Response(String(calls), { headers: { 'x-function': '${name}' } })
  },
}
`
}
