/**
 * Loaded into tap's runner: in which order test files run, and with which flags. tap itself takes their paths for the order, and
 * the same flags for all.
 */
import { registerHooks } from 'node:module'

/**
 * What takes longest in the whole form begins first, so that the end of a run does not wait for it alone; and what shares the
 * packages that it installs comes one after the other.
 */
const LONG = ['test/packages/', 'test/isolation/libraries.', 'test/libraries/', 'test/isolation/poison.', 'pack/test/tarballs.']

export function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string): number => {
    const place = LONG.findIndex((start) => file.startsWith(start))
    return place < 0 ? LONG.length : place
  }
  return files.toSorted((one, other) => rank(one) - rank(other))
}

/** Where tests make isolates in their own process. */
const WITH_ISOLATES = ['host/', 'packages/runtime/', 'packages/bundler/', 'test/wpt/']

/**
 * Of the flags of host processes (packages/server/src/hosts/host-program.ts) those without which isolates may fail. isolated-vm
 * asks for a process without Node's snapshot and its code cache, whose start takes 0.14 s more of CPU time.
 */
export function flagsOf(file: string): string[] {
  return WITH_ISOLATES.some((start) => file.startsWith(start))
    ? ['--no-node-snapshot', '--no-wasm-code-gc', '--single-threaded-gc', '--no-maglev']
    : []
}

/** What is put into which modules of the runner. */
const CHANGES: ReadonlyArray<readonly [module: string, from: string, to: string, added: string]> = [
  [
    'list.js',
    'export const list =',
    'const listByPath =',
    'export const list = async (...args) => longestFirst(await listByPath(...args))',
  ],
  ['run.js', '[...argv, file,', '[...argv, ...flagsOf(name), file,', ''],
]

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    const change = CHANGES.find(([module]) => url.endsWith(`/@tapjs/run/dist/esm/${module}`))
    if (change === undefined) return loaded
    const [module, from, to, added] = change
    const text = new TextDecoder().decode(loaded.source as Uint8Array)
    if (!text.includes(from)) throw new Error(`${module} of tap is not what it was: there is no ${from}`)
    const imports = `import { flagsOf, longestFirst } from '${import.meta.url}'`
    return { ...loaded, source: `${text.replace(from, () => to)}\n${imports}\n${added}\n` }
  },
})
