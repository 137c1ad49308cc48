import { builtinModules as nodeModules } from 'node:module'
import { constants as fsConstants } from 'node:fs'
import { constants as osConstants } from 'node:os'
import { extname } from 'node:path'
import { getSystemErrorMap } from 'node:util'
import { fileURLToPath } from 'node:url'
import { type Plugin, transform } from 'esbuild'
import { assetsModule, type Assets } from './module-files.ts'
import { nodeSource } from './node-sources.ts'
import { REFUSED } from './refused-modules.ts'
import { VIRTUAL_ROOT } from './virtual-path.ts'

/** Built-in modules of ours, by the file in `builtins/`. Each has a default export, which is what `require()` gives. */
const OURS: Readonly<Record<string, string>> = {
  'async_hooks': 'async-hooks',
  'console': 'console',
  // Libraries of the runtime, with native functions, as is `zlib`.
  'crypto': 'crypto',
  'dns': 'dns',
  'dns/promises': 'dns-promises',
  'fs': 'fs',
  'fs/promises': 'fs-promises',
  'http': 'http',
  'https': 'https',
  'module': 'module',
  'net': 'net',
  'os': 'os',
  'perf_hooks': 'perf-hooks',
  'process': 'process',
  'stream/web': 'stream-web',
  'timers': 'timers',
  'timers/promises': 'timers-promises',
  'tls': 'tls',
  'tty': 'tty',
  'vm': 'vm',
  'worker_threads': 'worker-threads',
  'zlib': 'zlib',
}

/** Built-in modules that are Node.js' own JavaScript. */
const NODES: readonly string[] = [
  '_http_common',
  '_http_incoming',
  '_http_outgoing',
  '_http_server',
  'assert',
  'assert/strict',
  'buffer',
  'constants',
  'diagnostics_channel',
  'events',
  'path',
  'path/posix',
  'path/win32',
  'punycode',
  'querystring',
  'readline',
  'readline/promises',
  'stream',
  'stream/consumers',
  'stream/promises',
  'string_decoder',
  'sys',
  'url',
  'util',
  'util/types',
]

/** What stands behind a part of Node.js that its JavaScript builds on, by the file in `builtins/internal/`. */
const BEHIND: Readonly<Record<string, string>> = {
  'binding:buffer': 'binding-buffer',
  'binding:string_decoder': 'binding-string-decoder',
  'binding:types': 'binding-types',
  'binding:util': 'binding-util',
  'internal/crypto/keys': 'keys',
  'internal/net': 'addresses',
  'internal/url': 'url',
  'internal/webstreams/adapters': 'webstreams-adapters',
  'primordials': 'primordials',
}

/** The same for what needs no more than a few names each: exports of `builtins/internal/small-parts.ts`. */
const SMALL: Readonly<Record<string, string>> = {
  'binding:config': 'config',
  'binding:cares_wrap': 'caresWrap',
  'binding:constants': 'constants',
  'binding:crypto': 'cryptoBinding',
  'binding:diagnostics_channel': 'diagnostics',
  'binding:encoding_binding': 'encodingBinding',
  'binding:errors': 'errors',
  'binding:http_parser': 'httpParser',
  'binding:icu': 'icu',
  'binding:messaging': 'messaging',
  'binding:os': 'osBinding',
  'binding:profiler': 'profiler',
  'binding:timers': 'timersBinding',
  'binding:url': 'urlBinding',
  'binding:url_pattern': 'urlPattern',
  'binding:uv': 'uv',
  'internal/abort_controller': 'abortController',
  'internal/async_context_frame': 'asyncContextFrame',
  'internal/async_hooks': 'asyncHooks',
  'internal/blob': 'blob',
  'internal/blocklist': 'blockLists',
  'internal/bootstrap/realm': 'realm',
  'internal/encoding': 'encoding',
  'internal/errors/error_source': 'errorSource',
  'internal/event_target': 'eventTarget',
  'internal/file': 'file',
  'internal/fs/glob': 'glob',
  'internal/modules/helpers': 'moduleHelpers',
  'internal/options': 'options',
  'internal/perf/observe': 'performanceObserver',
  'internal/process/execution': 'execution',
  'internal/process/task_queues': 'taskQueues',
  'internal/process/warning': 'warning',
  'internal/repl/history': 'history',
  'internal/socketaddress': 'socketAddresses',
  'internal/source_map/source_map_cache': 'sourceMaps',
  'internal/streams/iter/classic': 'streamIteration',
  'internal/streams/iter/types': 'streamIteration',
  'internal/timers': 'timers',
  'internal/trace_events': 'traceEvents',
  'internal/tty': 'tty',
  'internal/v8/startup_snapshot': 'startupSnapshot',
  'internal/worker/js_transferable': 'transferable',
}

const SMALL_PARTS = 'internal/small-parts'

/**
 * What else a module gets in place of a larger one, so that a bundle with it has not that as well: a file, and an export of it.
 */
const LIGHTER: Readonly<Record<string, Readonly<Record<string, readonly [file: string, part: string]>>>> = {
  'internal/errors': { buffer: ['internal/light', 'buffer'], util: ['internal/light', 'util'] },
  'internal/util': { vm: ['internal/light', 'vm'] },
  'internal/stream_base_commons': { timers: [SMALL_PARTS, 'netTimers'] },
  'internal/util/inspect': { buffer: ['internal/light', 'buffer'] },
  'net': { 'internal/net': ['sockets/names', 'names'], timers: [SMALL_PARTS, 'netTimers'] },
  'path': {
    'internal/fs/glob': ['internal/light-path', 'glob'],
    'internal/util': ['internal/light-path', 'util'],
    'internal/validators': ['internal/light-path', 'validators'],
  },
  'tls': { 'internal/tls/common': ['sockets/tls-parts', 'common'], 'internal/tls/wrap': ['sockets/tls-parts', 'wrap'] },
}

/** Modules of Node.js' own that ours of the same name load, by the names that they have for them. */
const OWN: Readonly<Record<string, string>> = { 'own/net': 'net', 'own/tls': 'tls' }

/** What stands behind them: exports of `builtins/sockets/handle.ts`. */
const SOCKET_PARTS: Readonly<Record<string, string>> = {
  'binding:pipe_wrap': 'pipe',
  'binding:stream_wrap': 'streamWrap',
  'binding:tcp_wrap': 'tcp',
}

const NODE = 'node'
const FACADE = 'node-names'
const COMMONJS = 'node-builtin'
const SMALL_PART = 'node-part'
const VIRTUAL = 'carpool-node'
const REFUSALS = 'node-refused'
const VIRTUALS = ['facts', 'lists', 'assets']

/**
 * Resolves the built-in modules of Node.js. Those that cannot work in a function are there as well: they throw when they are
 * used, so that a package which has them in a branch that never runs can be deployed.
 */
export function builtinModules(assets: Assets): Plugin {
  return {
    name: 'builtin-modules',
    setup(build) {
      // What these import they import by names of their own.
      build.onResolve({ filter: /.*/, namespace: NODE }, ({ path, importer }) =>
        resolvedInside(path.replace(/^node:/, ''), importer),
      )
      build.onResolve({ filter: /.*/, namespace: FACADE }, ({ path }) => resolved(path, true))
      const names = nodeModules.map((name) => name.replace(/^node:/, ''))
      const all = [...new Set([...names, ...Object.keys(OURS), ...NODES, ...Object.keys(REFUSED)])]
      const pattern = all.map((name) => name.replaceAll('/', '\\/')).join('|')
      build.onResolve({ filter: new RegExp(`^(?:node:)?(?:${pattern})$`) }, ({ path, kind }) => {
        const name = path.replace(/^node:/, '')
        // A package may have the name of a module that is only there with its prefix.
        if (!path.startsWith('node:') && nodeModules.includes(`node:${name}`)) return undefined
        return resolved(name, kind === 'require-call')
      })
      build.onResolve({ filter: /^cloudflare:sockets$/ }, () => ({
        path: shimPath('sockets/connect'),
        sideEffects: false,
      }))
      build.onResolve({ filter: /^carpool-node:/ }, ({ path }) => {
        const name = path.slice('carpool-node:'.length)
        return VIRTUALS.includes(name) ? { path: name, namespace: VIRTUAL, sideEffects: false } : resolvedInside(name)
      })

      build.onLoad({ filter: /.*/, namespace: NODE }, async ({ path }) => ({ contents: await nodeModule(path), loader: 'js' }))
      build.onLoad({ filter: /.*/, namespace: FACADE }, ({ path }) => ({ contents: facadeOf(path) }))
      build.onLoad({ filter: /.*/, namespace: COMMONJS }, ({ path }) => ({
        contents: `module.exports = require(${besides(path)}).default`,
        resolveDir: BUILTINS,
      }))
      build.onLoad({ filter: /.*/, namespace: SMALL_PART }, ({ path }) => ({
        contents: partOf(path),
        resolveDir: BUILTINS,
      }))
      build.onLoad({ filter: /.*/, namespace: REFUSALS }, ({ path }) => ({
        contents: refusalOf(path),
        resolveDir: BUILTINS,
      }))
      build.onLoad({ filter: /.*/, namespace: VIRTUAL }, async ({ path }) => ({
        contents:
          path === 'assets' ? await assetsModule(assets) : `export default ${JSON.stringify(path === 'facts' ? FACTS : LISTS)}`,
        loader: 'js',
      }))
    },
  }
}

interface Resolved {
  readonly path: string
  readonly namespace?: string
  readonly sideEffects?: boolean
}

/** A module as functions know it. `require()` gives the default export; `import` also gives the named ones. */
function resolved(name: string, isRequired: boolean): Resolved {
  const file = OURS[name]
  if (file !== undefined) {
    const path = shimPath(file)
    return isRequired
      ? { path: file, namespace: COMMONJS }
      : NAMELESS.includes(name)
        ? { path: name, namespace: FACADE }
        : { path, sideEffects: false }
  }
  if (!isRequired) return { path: name, namespace: FACADE, sideEffects: false }
  return NODES.includes(name) ? { path: name, namespace: NODE } : { path: name, namespace: REFUSALS }
}

/** Modules of ours that are made of lists, or in the runtime, and export no names themselves. */
const NAMELESS = [
  'console',
  'crypto',
  'dns',
  'dns/promises',
  'fs',
  'fs/promises',
  'http',
  'https',
  'net',
  'process',
  'stream/web',
  'tls',
  'zlib',
]

/** A module as Node.js' own modules know it. */
function resolvedInside(name: string, importer = ''): Resolved {
  const lighter = LIGHTER[importer]?.[name]
  if (lighter !== undefined) return { path: lighter.join('#'), namespace: SMALL_PART }
  const own = OWN[name]
  if (own !== undefined) return { path: own, namespace: NODE }
  const socketPart = SOCKET_PARTS[name]
  if (socketPart !== undefined) return { path: `sockets/handle#${socketPart}`, namespace: SMALL_PART }
  const behind = BEHIND[name]
  if (behind !== undefined) return { path: `internal/${behind}`, namespace: COMMONJS }
  if (Object.hasOwn(SMALL, name)) return { path: `${SMALL_PARTS}#${SMALL[name]}`, namespace: SMALL_PART }
  if (OURS[name] !== undefined || REFUSED[name] !== undefined) return resolved(name, true)
  return { path: name, namespace: NODE }
}

/** What Node.js does with a module when it starts. */
const AFTERWARDS: Readonly<Record<string, string>> = {
  'internal/util/debuglog': 'module.exports.initializeDebugEnv(process.env.NODE_DEBUG)',
}

/**
 * The bundler renames a class that has the name of something further out; what shows the name should show the class's. What
 * stands behind a getter is loaded when it is first used, and so not looked at here: {@link BEHIND_GETTERS} does it then.
 */
const namesBackOf = (named: string): string => `
  for (const [name, { value, enumerable }] of Object.entries(Object.getOwnPropertyDescriptors(${named}))) {
    if (enumerable && typeof value === 'function' && value.name !== name && value.name.replace(/^_|\\d+$/g, '') === name) {
      Object.defineProperty(value, 'name', { value: name, configurable: true })
    }
  }`

/** An export of a file as a module. */
function partOf(path: string): string {
  const [file = '', part] = path.split('#')
  return `module.exports = require(${besides(file)}).${part}`
}

/** Modules that others have behind getters, by what they export under which names. */
const BEHIND_GETTERS: Readonly<Record<string, string>> = {
  'internal/mime': 'module.exports',
  'internal/util/debounce': '{ debounce: module.exports }',
  'internal/util/diff': 'module.exports',
  'internal/util/parse_args/parse_args': 'module.exports',
  'internal/util/throttle': '{ throttle: module.exports }',
}

const loaded = new Map<string, Promise<string>>()

function nodeModule(name: string): Promise<string> {
  let text = loaded.get(name)
  if (text === undefined) loaded.set(name, (text = readNodeModule(name)))
  return text
}

/** The text of one of Node.js' own modules with what Node.js gives to each, and without comments and most white space. */
async function readNodeModule(name: string): Promise<string> {
  const source = nodeSource(name)
  // Required where it is wanted, which a function then learns.
  if (source === undefined) return `throw new Error(${JSON.stringify(`${name} of Node.js is not available in a function.`)})`
  const text = source
    .replace(/\binternalBinding\('(\w+)'\)/g, "require('binding:$1')")
    .replace(/\b(defineLazyProperties\(\s*[\w.]+,\s*)('[\w/]+'),/g, '$1() => require($2),')
  const given = [
    ...(/\bprimordials\b/.test(text) ? ["const primordials = require('primordials')"] : []),
    ...(/(?<![.\w'/])process\b(?!')/.test(text) && !/const process\b/.test(text) ? ["const process = require('process')"] : []),
  ]
  const named = NODES.includes(name) ? 'module.exports' : BEHIND_GETTERS[name]
  const after = [AFTERWARDS[name], ...(named === undefined ? [] : [namesBackOf(named)])]
  const { code } = await transform(`${given.map((line) => `${line};`).join('')}${text}\n${after.join('\n')}`, {
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: 'none',
    charset: 'utf8',
    logLevel: 'silent',
    tsconfigRaw: {},
  })
  return code
}

/** An ES module that gives what a CommonJS module has under the names that Node.js' module has. */
function facadeOf(name: string): string {
  const names = namesOf(name).filter(
    (one) => one !== 'default' && /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(one) && !RESERVED.has(one),
  )
  // What nobody imports may stand behind a getter that loads more, and is left out.
  const list = names.map((one) => `const ${one}_ = /* @__PURE__ */ (() => module_.${one})();`)
  const exported = names.map((one) => `${one}_ as ${one}`)
  return `import module_ from ${JSON.stringify(name)}; ${list.join('')} export { module_ as default${exported.map((one) => `, ${one}`).join('')} }`
}

const RESERVED = new Set(['default', 'module_'])

/** What `import` can take from a module: what the one of the Node.js that bundles has. */
function namesOf(name: string): readonly string[] {
  const module = ofNode(name)
  return module === undefined ? [] : Object.keys(module)
}

/** A module of the Node.js that bundles. What it warns of when it is loaded is not for who deploys. */
function ofNode(name: string): Record<string, unknown> | undefined {
  const warns = Object.getOwnPropertyDescriptor(process, 'emitWarning')!
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule(`node:${name}`) as Record<string, unknown> | undefined
  } finally {
    Object.defineProperty(process, 'emitWarning', warns)
  }
}

/** A module of which nothing works: functions and classes throw when they are called, values are what they are. */
function refusalOf(name: string): string {
  const { why, values = {} } = REFUSED[name] ?? { why: 'it is not made for code without a machine of its own' }
  const module = ofNode(name) ?? {}
  const functions = Object.keys(module).filter((key) => typeof readOf(module, key) === 'function')
  const plain = Object.fromEntries(
    Object.entries(module).filter(([key]) => ['string', 'number', 'boolean'].includes(typeof readOf(module, key))),
  )
  const constants = isPlain(readOf(module, 'constants')) ? { constants: module['constants'] } : {}
  const parts = [name, why, functions, { ...plain, ...constants, ...values }].map((part) => JSON.stringify(part))
  return `module.exports = require(${besides('refuse')}).refusedModule(${parts.join(', ')})`
}

function readOf(module: Readonly<Record<string, unknown>>, key: string): unknown {
  try {
    return module[key]
  } catch {
    return undefined
  }
}

function isPlain(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

const FACTS = {
  root: VIRTUAL_ROOT,
  execPath: '/usr/local/bin/node',
  pid: 1,
  platform: 'linux',
  arch: 'x64',
  versions: versionsOf(),
  features: { inspector: false, debug: false, uv: false, ipv6: true, tls: true, typescript: false, require_module: true },
}

const LISTS = {
  builtinModules: nodeModules,
  osConstants,
  fsConstants,
  errorNames: Object.fromEntries(getSystemErrorMap()),
}

/** Of what a function may meet. */
function versionsOf(): Readonly<Record<string, string>> {
  const { node, v8, modules, uv, zlib, openssl, unicode, icu } = process.versions
  return { node, v8, modules, uv, zlib, openssl, unicode: unicode ?? '', icu: icu ?? '' }
}

const EXTENSION = extname(import.meta.filename)
const BUILTINS = fileURLToPath(new URL('./builtins', import.meta.url))

/** The same, as a module in that folder names it: a path of this machine would stand in the source map. */
function besides(name: string): string {
  return JSON.stringify(`./${name}${EXTENSION}`)
}

/** A file of `builtins/`, which becomes part of bundles and never runs here. */
export function shimPath(name: string): string {
  return fileURLToPath(new URL(`./builtins/${name}${EXTENSION}`, import.meta.url))
}
