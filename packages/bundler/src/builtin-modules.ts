import { dirname, extname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'

/**
 * The built-in modules of Node that work in a bare isolate with web globals, with the ES module behind each. From unenv those that
 * answered as Node's in an isolate; of its others, `util` is ours, `buffer` ours in part, and `assert`,
 * `string_decoder`, `stream` and `async_hooks` gave wrong answers or none. `crypto` and `zlib` are parts of the runtime.
 */
const MODULES = {
  'buffer': () => shimPath('buffer'),
  'crypto': () => shimPath('crypto'),
  'diagnostics_channel': () => unenvPath('diagnostics_channel'),
  'events': () => unenvPath('events'),
  'path': () => unenvPath('path'),
  'path/posix': () => unenvPath('path/posix'),
  'punycode': () => unenvPath('punycode'),
  'querystring': () => unenvPath('querystring'),
  'timers': () => unenvPath('timers'),
  'timers/promises': () => unenvPath('timers/promises'),
  'url': () => unenvPath('url'),
  'util': () => shimPath('util'),
  'util/types': () => shimPath('util-types'),
  'zlib': () => shimPath('zlib'),
} as const satisfies Record<string, () => string>

type SupportedModule = keyof typeof MODULES

const UNENV_FOLDER = dirname(unenvPath('events')) + sep

const COMMONJS_NAMESPACE = 'node-builtin'

/**
 * Resolves the built-in modules that functions can use. All others stay unresolved, which fails the build unless the use is inside
 * a `try`: then it throws when it runs, as packages that look for a module expect.
 */
export const builtinModules: Plugin = {
  name: 'builtin-modules',
  setup(build) {
    build.onResolve({ filter: /^(node:)?process$/ }, () => ({ path: 'process', namespace: COMMONJS_NAMESPACE }))
    const names = Object.keys(MODULES).join('|')
    build.onResolve({ filter: new RegExp(`^(node:)?(${names})$`) }, ({ path, kind }) => {
      const name = path.replace(/^node:/, '') as SupportedModule
      // `require()` gives the default export, which for `events` is the class itself; `import` also gives the named ones.
      if (kind === 'require-call') return { path: name, namespace: COMMONJS_NAMESPACE }
      return { path: MODULES[name](), sideEffects: false }
    })
    // What unenv's modules import of each other, supported for others or not.
    build.onResolve({ filter: /^node:/ }, ({ path, importer }) => {
      return importer.startsWith(UNENV_FOLDER) ? { path: unenvPath(path.slice('node:'.length)), sideEffects: false } : undefined
    })
    build.onLoad({ filter: /.*/, namespace: COMMONJS_NAMESPACE }, ({ path }) => ({
      // What the runtime of the host gives as the global, with all its properties as names to import.
      contents:
        path === 'process'
          ? 'module.exports = globalThis.process'
          : `module.exports = require(${JSON.stringify(MODULES[path as SupportedModule]())}).default`,
      resolveDir: import.meta.dirname,
    }))
  },
}

/** A file of `builtins/`, which becomes part of bundles and never runs here. */
export function shimPath(name: string): string {
  return fileURLToPath(new URL(`./builtins/${name}${extname(import.meta.filename)}`, import.meta.url))
}

function unenvPath(name: string): string {
  return fileURLToPath(import.meta.resolve(`unenv/node/${name}`))
}
