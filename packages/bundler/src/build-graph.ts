import { CarpoolError } from '@carpool/core'
import { build, type BuildFailure, type BuildOptions, type Loader, type Metafile, transform } from 'esbuild'
import { readFile, stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import { toCarpoolError } from './build-errors.ts'
import { builtinModules, shimPath } from './builtin-modules.ts'
import { type Assets, moduleFiles, PLACE_DEFINES, tooLargeText } from './module-files.ts'
import { VIRTUAL_ROOT } from './virtual-path.ts'
import { labelPath } from './label-path.ts'
import { nativeAddons } from './native-addons.ts'
import { nodeBuilds } from './node-builds.ts'
import { sdkFallback } from './sdk-fallback.ts'
import { bundledFiles, fileOfModule, type WebAssemblyFiles, webAssemblyFiles } from './web-assembly-files.ts'

/** What the bundler behind this file gives; nothing else in the package knows which bundler that is, but for its plugins. */
export interface ModuleGraph {
  /**
   * `iife`: `var x = (() => { modules; return exports })()`. `esm`: modules, then exports; only if there is a top-level await.
   */
  readonly format: 'iife' | 'esm'
  readonly code: string
  /** Of `code`, as the bundler gives it: sources relative to the folder, not labelled. */
  readonly sourceMap: string
  readonly folder: string
  /** Every module's path as it stands in comments and keys of `code`, with what became of it. */
  readonly modules: ReadonlyMap<string, 'esm' | 'cjs' | 'data'>
  /** CommonJS modules of the function's own, as in `modules`, that do not ask for strict mode. */
  readonly sloppy: ReadonlySet<string>
  /** The entry, relative to the folder. */
  readonly entryLabel: string
  readonly entryFormat: 'esm' | 'cjs' | 'data'
  /** Whether it can make a server of `node:http`, which is a handler without being exported. */
  readonly hasServers: boolean
  readonly webAssembly: WebAssemblyFiles
  /** Absolute paths of the modules outside `node_modules`. */
  readonly watched: readonly string[]
}

/** `http` and `https` as the bundler names them, imported and required. */
const SERVER_MODULES = ['http', 'https'].flatMap((name) => [`node-names:${name}`, `node-builtin:${name}`])

/** Stand for free identifiers in a first build, so that their use shows. */
const BUFFER_MARK = '__carpool_Buffer'
const PROCESS_MARK = '__carpool_process'

/** Of an ES module as a whole; what is asked for by name differs from one to the other (module-files.ts). */
const PLACE = `${VIRTUAL_ROOT}/index.js`
const IMPORT_META = { url: `file://${PLACE}`, filename: PLACE, dirname: VIRTUAL_ROOT, main: false }

const OUTPUT_NAME = 'bundle.js'
/** The module of the bundled files, as the bundler names it. */
const ASSETS_PATH = 'carpool-node:assets'

interface BuildPlan {
  readonly format: 'iife' | 'esm'
  readonly injectBuffer: boolean
  readonly injectProcess: boolean
  /** Files that are in it as they are. */
  readonly assets: Assets
  /** Modules without a sign of their format that Node would run as CommonJS; absolute paths. */
  readonly forced: ReadonlySet<string>
}

/**
 * Bundles an entry with everything it imports.
 * @param limitBytes what a bundle may have at most: a module that has far more is not even read
 * @throws CarpoolError `bundle-failed` with up to ten errors as `file:line:column: text` and the line; `bundle-empty`,
 * `bundle-too-large`
 */
export async function buildGraph(folder: string, entry: string, limitBytes: number): Promise<ModuleGraph> {
  const { size } = await stat(entry)
  const tooLarge = tooLargeText(labelPath(entry, folder), size, limitBytes)
  if (tooLarge !== undefined) throw new CarpoolError('bundle-too-large', `${tooLarge}.`)
  await refuseEmpty(folder, entry)
  let plan: BuildPlan = { format: 'iife', injectBuffer: false, injectProcess: false, assets: new Map(), forced: new Set() }
  // Each round can only add to the plan, so this ends.
  for (;;) {
    const named: Assets = new Map()
    const built = await runBuild({ folder, entry, limitBytes }, plan, named)
    if (built === 'needs-esm') {
      plan = { ...plan, format: 'esm' }
      continue
    }
    const unsigned = unsignedModules(folder, entry, built.metafile).filter((path) => !plan.forced.has(path))
    const usesBuffer = !plan.injectBuffer && built.code.includes(BUFFER_MARK)
    const usesProcess = !plan.injectProcess && built.code.includes(PROCESS_MARK)
    // Without `fs` nobody could read them.
    const addsAssets =
      built.metafile.inputs[ASSETS_PATH] !== undefined && [...named.keys()].some((path) => !plan.assets.has(path))
    if (unsigned.length === 0 && !usesBuffer && !usesProcess && !addsAssets) return await toGraph(folder, plan, built)
    plan = {
      ...plan,
      injectBuffer: plan.injectBuffer || usesBuffer,
      injectProcess: plan.injectProcess || usesProcess,
      assets: addsAssets ? new Map([...plan.assets, ...named]) : plan.assets,
      forced: new Set([...plan.forced, ...unsigned]),
    }
  }
}

interface Built {
  readonly code: string
  readonly sourceMap: string
  readonly metafile: Metafile
  readonly webAssembly: WebAssemblyFiles
}

interface BuildSource {
  readonly folder: string
  readonly entry: string
  readonly limitBytes: number
}

async function runBuild(source: BuildSource, plan: BuildPlan, named: Assets): Promise<Built | 'needs-esm'> {
  const { folder } = source
  const modules = new Map<string, string>()
  try {
    const options = buildOptions(source, plan, named)
    const { outputFiles, metafile } = await build({
      ...options,
      plugins: [...options.plugins, webAssemblyFiles(folder, modules)],
    })
    const textOf = (name: string): string => outputFiles.find((file) => file.path === join(folder, name))?.text ?? ''
    return {
      code: textOf(OUTPUT_NAME),
      sourceMap: textOf(`${OUTPUT_NAME}.map`),
      metafile,
      webAssembly: bundledFiles(modules, metafile, folder),
    }
  } catch (error) {
    const { errors } = error as BuildFailure
    if (!Array.isArray(errors)) throw error
    if (plan.format === 'iife' && errors.every(({ text }) => text.startsWith('Top-level await is currently not supported')))
      return 'needs-esm'
    throw toCarpoolError(
      errors.filter(({ text }) => !text.startsWith('Top-level await is currently')),
      folder,
    )
  }
}

/** As an object it becomes a module that all others import, so only where `import.meta` itself could not stand in the script. */
function importMetaDefines(format: 'iife' | 'esm'): Record<string, string> {
  return {
    ...PLACE_DEFINES,
    ...(format === 'esm' ? { 'import.meta': JSON.stringify(IMPORT_META) } : { 'import.meta.main': 'false' }),
  }
}

function buildOptions({ folder, entry, limitBytes }: BuildSource, plan: BuildPlan, named: Assets) {
  const { format, injectBuffer, injectProcess, forced, assets } = plan
  const inject = [...(injectBuffer ? ['buffer-global'] : []), ...(injectProcess ? ['process-global'] : [])]
  return {
    absWorkingDir: folder,
    entryPoints: [entry],
    outfile: join(folder, OUTPUT_NAME),
    write: false,
    bundle: true,
    format,
    ...(format === 'iife' && { globalName: 'exports_' }),
    // Not `neutral`: only with a platform's own list of main fields does esbuild give `require()` a package's `main`, whose
    // `module.exports` the caller expects, and `import` its `module`.
    platform: 'browser',
    conditions: ['carpool', 'worker', 'browser'],
    target: 'esnext',
    supported: { decorators: false },
    jsx: 'automatic',
    define: {
      'process.env.NODE_ENV': '"production"',
      'global': 'globalThis',
      ...importMetaDefines(format),
      ...(!injectBuffer && { Buffer: BUFFER_MARK }),
      // The global has `env` in any case.
      'process.env': 'globalThis.process.env',
      ...(!injectProcess && { 'process': PROCESS_MARK, 'globalThis.process': PROCESS_MARK }),
    },
    inject: inject.map(shimPath),
    loader: { '.node': 'empty' },
    plugins: [
      sdkFallback,
      nativeAddons,
      nodeBuilds,
      builtinModules(assets),
      moduleFiles({ folder, forced, assets: named, limitBytes }),
    ],
    sourcemap: 'external',
    sourcesContent: true,
    metafile: true,
    charset: 'utf8',
    legalComments: 'none',
    logLevel: 'silent',
    logLimit: 0,
  } as const satisfies BuildOptions
}

async function toGraph(
  folder: string,
  { format, assets }: BuildPlan,
  { code, sourceMap, metafile, webAssembly }: Built,
): Promise<ModuleGraph> {
  const modules = new Map(Object.entries(metafile.inputs).map(([path, input]) => [path, input.format ?? 'data'] as const))
  const entryPath = entryPathOf(metafile)
  const own = [...modules.keys()].filter((path) => isFile(path) && !labelPath(path, folder).includes('node_modules/'))
  const commonJs = own.filter((path) => modules.get(path) === 'cjs' && !fileOfModule(path).endsWith('.wasm'))
  const isStrict = await Promise.all(
    commonJs.map(async (path) => asksForStrictMode(await readFile(resolve(folder, path), 'utf8'))),
  )
  return {
    format,
    code,
    sourceMap,
    folder,
    modules,
    webAssembly,
    hasServers: [...modules.keys()].some((path) => SERVER_MODULES.includes(path)),
    entryLabel: labelPath(entryPath, folder),
    entryFormat: modules.get(entryPath) ?? 'data',
    sloppy: new Set(commonJs.filter((_, index) => !isStrict[index])),
    watched: [...new Set([...own.map((path) => resolve(folder, fileOfModule(path))), ...assets.values()])],
  }
}

/** Whether a script begins with a `'use strict'` of its own, behind comments and other directives. */
function asksForStrictMode(text: string): boolean {
  return /^(?:#!.*\n)?(?:\s|\/\/.*\n|\/\*(?:[^*]|\*(?!\/))*\*\/|(["'])(?!use strict)[^"'\n]*\1;?)*(["'])use strict\2/.test(text)
}

function entryPathOf(metafile: Metafile): string {
  return Object.values(metafile.outputs).find((output) => output.entryPoint !== undefined)?.entryPoint ?? ''
}

/** Whether a module is a file, and not one of a plugin or of the bundler itself. */
function isFile(path: string): boolean {
  return !/^(<|\(?[\w-]{2,}\)?:)/.test(path)
}

/**
 * Scripts with neither imports, exports nor uses of `module` and the like, where no package.json and no extension says what
 * they are. Node runs them as CommonJS; esbuild would run them as part of the ES module that imports them.
 */
function unsignedModules(folder: string, entry: string, { inputs }: Metafile): string[] {
  return Object.entries(inputs)
    .filter(([path, { format, bytes }]) => format === undefined && bytes > 0 && /\.[jt]sx?$/.test(path) && isFile(path))
    .map(([path]) => resolve(folder, path))
    .filter((path) => path !== entry)
}

async function refuseEmpty(folder: string, entry: string): Promise<void> {
  const text = await readFile(entry, 'utf8')
  const loader = extname(entry).replace(/^\.[cm]?/, '') as Loader
  // What does not parse is not empty; the build says what is wrong with it.
  const code = await transform(text, { loader, minifyWhitespace: true, legalComments: 'none', logLevel: 'silent' }).then(
    (result) => result.code.trim(),
    () => text,
  )
  if (code !== '') return
  throw new CarpoolError('bundle-empty', `${labelPath(entry, folder)} is empty: it has no code to run.`)
}
