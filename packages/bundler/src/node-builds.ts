import { createRequire } from 'node:module'
import type { Plugin } from 'esbuild'

/**
 * Packages whose build for browsers does something else than that for Node.js, or needs what only a browser has. Of all others
 * the one for browsers is taken: it is smaller, and needs no more than the web APIs.
 */
const PACKAGES = ['@mixmark-io/domino', 'form-data', 'pino', 'stripe', 'turndown']

/** Resolves them as Node.js does. */
export const nodeBuilds: Plugin = {
  name: 'node-builds',
  setup(build) {
    build.onResolve({ filter: new RegExp(`^(?:${PACKAGES.join('|')})$`) }, ({ path, resolveDir }) => {
      try {
        return { path: createRequire(`${resolveDir}/index.js`).resolve(path) }
      } catch {
        return undefined
      }
    })
    // Left out for browsers, and wanted wherever there is a `process`.
    build.onResolve({ filter: /^\.\/(?:extend-node|streams)$/ }, ({ path, resolveDir }) => {
      return /iconv-lite[\\/]lib$/.test(resolveDir) ? { path: `${resolveDir}/${path.slice(2)}.js` } : undefined
    })
    // It reads XML with the browser's DOM.
    build.onResolve({ filter: /^\.\/xml-parser$/ }, ({ path, resolveDir }) => {
      return resolveDir.includes('xml-builder') ? { path: `${resolveDir}/${path.slice(2)}.js` } : undefined
    })
  },
}
