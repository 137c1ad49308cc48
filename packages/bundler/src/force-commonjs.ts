import { readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Loader, Plugin } from 'esbuild'

/** A use of `exports` is what makes esbuild see CommonJS. At the end, so that no position moves. */
export const FORCED_COMMONJS_SUFFIX = '\n;exports'

/** Makes files that show no sign of their format CommonJS. */
export function forceCommonJs(paths: ReadonlySet<string>): Plugin {
  return {
    name: 'force-commonjs',
    setup(build) {
      if (paths.size === 0) return
      build.onLoad({ filter: /\.[jt]sx?$/, namespace: 'file' }, async ({ path }) => {
        if (!paths.has(path)) return undefined
        const contents = (await readFile(path, 'utf8')) + FORCED_COMMONJS_SUFFIX
        return { contents, loader: extname(path).slice(1) as Loader }
      })
    },
  }
}
