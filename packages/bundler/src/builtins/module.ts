/** `node:module` in a function: what was bundled is all there is. */
import facts from 'carpool-node:facts'
import lists from 'carpool-node:lists'
import { refuse } from './refuse.ts'

const { builtinModules } = lists
/** Those that have a name only with the prefix. */
const WITH_PREFIX = builtinModules.filter((name) => name.startsWith('node:'))

function isBuiltin(name: unknown): boolean {
  if (typeof name !== 'string') return false
  return (
    builtinModules.includes(name) ||
    (name.startsWith('node:') && (WITH_PREFIX.includes(name) || builtinModules.includes(name.slice(5))))
  )
}

type Load = () => unknown

/** @param bundled what the bundler found that is required with the result, by its name: see module-files.ts */
function createRequire(_from: string | URL, bundled: Readonly<Record<string, Load>> = {}): (name: string) => unknown {
  const require = (name: string): unknown => {
    const load = Object.hasOwn(bundled, name) ? bundled[name] : undefined
    if (load !== undefined) return load()
    const error = new Error(
      `Cannot find module '${name}'. A function requires by createRequire only what its text names: createRequire(import.meta.url)('name').`,
    )
    throw Object.assign(error, { code: 'MODULE_NOT_FOUND', requireStack: [] })
  }
  const resolve = (name: string): string => (isBuiltin(name) ? name : `${facts.root}/node_modules/${name}`)
  return Object.assign(require, {
    resolve: Object.assign(resolve, { paths: () => [] }),
    cache: {},
    extensions: {},
    main: undefined,
  })
}

const { register, registerHooks, runMain, SourceMap, stripTypeScriptTypes, _load, _resolveFilename } = refuse(
  'module',
  'its modules were bundled when it was deployed',
  ['register', 'registerHooks', 'runMain', 'SourceMap', 'stripTypeScriptTypes', '_load', '_resolveFilename'],
)

class Module {
  static builtinModules = builtinModules
  static isBuiltin = isBuiltin
  static createRequire = createRequire
  static Module = Module
  static _cache = {}
  static _extensions = {}
  static _pathCache = {}
  static globalPaths = []
  static _load = _load
  static _resolveFilename = _resolveFilename
  static register = register
  static registerHooks = registerHooks
  static runMain = runMain
  static SourceMap = SourceMap
  static getSourceMapsSupport = (): object => ({ enabled: false, nodeModules: false, generatedCode: false })
  static setSourceMapsSupport = (): void => {}
  static findPackageJSON = (): undefined => undefined
  static findSourceMap = (): undefined => undefined
  static enableCompileCache = (): object => ({ status: 3 })
  static getCompileCacheDir = (): undefined => undefined
  static flushCompileCache = (): void => {}
  static syncBuiltinESMExports = (): void => {}
  static stripTypeScriptTypes = stripTypeScriptTypes
  static wrap = (text: string): string => `(function (exports, require, module, __filename, __dirname) { ${text}\n});`

  exports: unknown = {}
  id: string
  filename = null
  loaded = false
  children = []
  paths = []

  constructor(id = '') {
    this.id = id
  }
}

export { builtinModules, createRequire, isBuiltin, Module, register, registerHooks, runMain, SourceMap, stripTypeScriptTypes }
export const {
  enableCompileCache,
  findPackageJSON,
  findSourceMap,
  flushCompileCache,
  getCompileCacheDir,
  getSourceMapsSupport,
  setSourceMapsSupport,
  syncBuiltinESMExports,
  wrap,
} = Module
export default Module
