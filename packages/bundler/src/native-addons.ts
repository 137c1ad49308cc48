import type { Plugin } from 'esbuild'
import { labelPath } from './label-path.ts'

/**
 * Packages with code for the machine in them, which load it in ways that a bundler cannot see, and what does the same without.
 */
const INSTEAD: Readonly<Record<string, string>> = {
  '@mongodb-js/zstd': 'use another compression',
  '@napi-rs/canvas': 'draw in a service of its own',
  'argon2': 'use hash-wasm, or scrypt of node:crypto',
  'bcrypt': 'use bcryptjs',
  'better-sqlite3': 'use a database that answers over HTTP',
  'bufferutil': 'ws works without it',
  'canvas': 'draw in a service of its own',
  'cpu-features': 'ssh2 works without it',
  'kerberos': 'use another way to authenticate',
  'libsql': 'use @libsql/client/web',
  'node-sass': 'use sass',
  'pg-native': 'use pg',
  're2': 'use re2-wasm, or RegExp',
  'sharp': 'resize images in a service of their own, or with a library in WebAssembly',
  'snappy': 'use snappyjs',
  'sodium-native': 'use libsodium-wrappers, or node:crypto',
  'sqlite3': 'use a database that answers over HTTP',
  'utf-8-validate': 'ws works without it',
  'zlib-sync': 'use pako',
}

/** Packages that look for the file of an addon and load it, for the one that asks them. */
const LOADERS = [
  'bindings',
  'node-gyp-build',
  '@mapbox/node-pre-gyp',
  'node-pre-gyp',
  'prebuild-install',
  'node-addon-api',
  'neon-load-or-build',
]

const NAMESPACE = 'native-addon'

/**
 * Refuses packages that are made for the machine, where a function imports them itself. What a package requires may stand in a
 * branch that never runs, or in a `try`: it throws when it runs.
 */
export const nativeAddons: Plugin = {
  name: 'native-addons',
  setup(build) {
    const names = [...Object.keys(INSTEAD), ...LOADERS]
      .map((name) => name.replaceAll('/', '\\/').replaceAll('.', '\\.'))
      .join('|')
    build.onResolve({ filter: new RegExp(`^(?:${names})(?:\\/.*)?$|\\.node$`) }, ({ path, importer, kind, namespace }) => {
      if (namespace !== 'file') return undefined
      const name = nameOf(path, importer)
      if (name === undefined) return undefined
      const isOwn = packageOfFile(importer) === undefined
      if (isOwn && kind === 'import-statement') return { errors: [{ text: nativeMessage(name) }] }
      return { path: name, namespace: NAMESPACE }
    })
    build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => ({
      contents: `throw Object.assign(new Error(${JSON.stringify(`${nativeMessage(path)}.`)}), { code: 'ERR_DLOPEN_FAILED' }); module.exports = {}`,
    }))
  },
}

/** The package that has an addon, if this is the use of one. */
function nameOf(path: string, importer: string): string | undefined {
  if (path.endsWith('.node')) return packageOfFile(path) ?? packageOfFile(importer) ?? labelPath(path, '/')
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path
  return LOADERS.includes(name) ? (packageOfFile(importer) ?? name) : name
}

function nativeMessage(name: string): string {
  const instead = INSTEAD[name]
  return `${name} is a native addon, which is made for the machine and cannot run in a function${instead === undefined ? '' : `; ${instead}`}`
}

/** The package that a file is of: the last one on its path. */
function packageOfFile(path: string): string | undefined {
  return /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/s.exec(path)?.[1]?.replace('\\', '/')
}
