/**
 * Loaded into tap's runner: what takes longest begins first, so that the end of a run does not wait for it alone. tap itself knows the order of
 * paths only.
 */
import { registerHooks } from 'node:module'

/** In the whole form each of them takes more than two minutes, or has others beside it that share what it installs. */
const LONG = ['test/packages/', 'test/isolation/libraries.', 'test/libraries/', 'test/isolation/poison.', 'pack/test/tarballs.']

export function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string): number => {
    const place = LONG.findIndex((start) => file.startsWith(start))
    return place < 0 ? LONG.length : place
  }
  return files.toSorted((one, other) => rank(one) - rank(other))
}

const LIST = '/@tapjs/run/dist/esm/list.js'
const OURS = `import { longestFirst } from '${import.meta.url}'
export const list = async (...args) => longestFirst(await listByPath(...args))`

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    if (!url.endsWith(LIST)) return loaded
    const source = new TextDecoder().decode(loaded.source as Uint8Array)
    return { ...loaded, source: `${source.replace('export const list =', 'const listByPath =')}\n${OURS}` }
  },
})
