import { lstat, readFile, readdir, realpath, stat } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { homedir } from 'node:os'
import { basename, dirname, extname, isAbsolute, join, posix, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Loader, Plugin } from 'esbuild'
import { labelPath } from './label-path.ts'
import { virtualPath } from './virtual-path.ts'

/** A use of `exports` is what makes esbuild see CommonJS. At the end, so that no position moves. */
export const FORCED_COMMONJS_SUFFIX = '\n;exports'

/** A folder that code names is taken with all files in it, but no more than these. */
const MOST_FILES = 1000
const MOST_BYTES = 16 * 1024 * 1024

/** Files to be bundled, by absolute path: the one in the function, and the one on this machine. */
export type Assets = Map<string, string>

export interface ModuleFiles {
  readonly folder: string
  /** Modules that are to be CommonJS; absolute paths. */
  readonly forced: ReadonlySet<string>
  /** What a bundle may have at most. */
  readonly limitBytes: number
  /** Filled with what modules name. */
  readonly assets: Assets
}

/** A module is at most so many times as long as what comes of it, but for what is not used of packages. */
const SOURCE_PER_BUNDLE = 4
const LEAST_SOURCE_BYTES = 16 * 1024 * 1024

/** Why a module is not read: the bundler would take half a minute, and gigabytes, for what cannot fit. */
export function tooLargeText(label: string, bytes: number, limitBytes: number): string | undefined {
  if (bytes <= Math.max(LEAST_SOURCE_BYTES, SOURCE_PER_BUNDLE * limitBytes)) return undefined
  return `${label} has ${bytes} bytes, which cannot become a bundle: its limit is ${limitBytes} bytes`
}

/**
 * Reads the source files. What a module asks of its own place becomes a path in the function, by {@link PLACE_DEFINES}; files
 * that it names by its own place are noted; `createRequire` gets what is required with its result.
 */
export function moduleFiles({ folder, forced, assets, limitBytes }: ModuleFiles): Plugin {
  return {
    name: 'module-files',
    setup(build) {
      build.onResolve({ filter: new RegExp(`^${REQUIRED}:`) }, ({ path, resolveDir }) => ({
        path: `${resolveDir}|${path.slice(REQUIRED.length + 1)}`,
        namespace: REQUIRED,
      }))
      build.onLoad({ filter: /.*/, namespace: REQUIRED }, ({ path }) => {
        const end = path.indexOf('|')
        const name = JSON.stringify(path.slice(end + 1))
        // In a `try` what cannot be resolved is no error of the build.
        const contents = `export const load = () => { try { return require(${name}) } catch (error) { throw error } }`
        return { contents, resolveDir: path.slice(0, end) }
      })
      build.onLoad({ filter: /\.[cm]?[jt]sx?$/, namespace: 'file' }, async ({ path }) => {
        const tooLarge = tooLargeText(labelPath(path, folder), (await stat(path)).size, limitBytes)
        if (tooLarge !== undefined) return { errors: [{ text: tooLarge }] }
        const bytes = await readFile(path)
        const isForced = forced.has(path)
        const isPlaced = PLACE_MARKS.some((mark) => bytes.includes(mark))
        const readsFiles = bytes.includes('readFile') || bytes.includes('createReadStream')
        const asksForModules = bytes.includes('getBuiltinModule')
        if (!isForced && !isPlaced && !readsFiles && !asksForModules) return undefined
        const text = bytes.toString()
        const tooMuch = isPlaced || readsFiles ? await noteAssets(text, path, folder, assets) : undefined
        if (tooMuch !== undefined) return { errors: [{ text: `${labelPath(path, folder)}: ${tooMuch}` }] }
        const placed = isPlaced ? withPlace(withRequires(text), virtualPath(path, folder)) : text
        const contents = asksForModules ? withModules(placed) : placed
        return { contents: isForced ? contents + FORCED_COMMONJS_SUFFIX : contents, loader: loaderOf(path) }
      })
    },
  }
}

const PLACE_MARKS = ['__dirname', '__filename', 'import.meta', 'createRequire']

function loaderOf(path: string): Loader {
  return extname(path).replace(/^\.[cm]?/, '') as Loader
}

/** A script's beginning: what must stay in front of the first statement. */
const OPENING = /^(?:#![^\n]*\n)?(?:\s+|\/\/[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/|(["'])use strict\1[ \t]*(?:;|(?=\n)))*/

/**
 * What a module asks of its own place, and what it is called instead: esbuild knows scopes and texts, and changes only what
 * means it.
 */
export const PLACE_DEFINES = {
  'import.meta.url': 'carpoolUrl_',
  'import.meta.filename': 'carpoolFilename_',
  'import.meta.dirname': 'carpoolDirname_',
  __filename: 'carpoolFilename_',
  __dirname: 'carpoolDirname_',
}

/** Puts a module's place into it, on a line that is there. */
function withPlace(text: string, path: string): string {
  const known = { carpoolUrl_: pathToFileURL(path).href, carpoolFilename_: path, carpoolDirname_: posix.dirname(path) }
  const values = Object.entries(known).map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
  const start = OPENING.exec(text)?.[0].length ?? 0
  return `${text.slice(0, start)}var ${values.join(', ')}; ${text.slice(start)}`
}

const MADE_REQUIRE =
  /\b(?:const|let|var)\s+([\w$]+)\s*=\s*(?:[\w$]+\.)?createRequire\d*\s*\(\s*(?:import\.meta\.(?:url|filename)|__filename)\s*(?=\))/g
const REQUIRED = 'carpool-require'

/** Gives `createRequire(import.meta.url)` what its result is called with, so that the bundler sees it. */
function withRequires(text: string): string {
  if (!text.includes('createRequire')) return text
  const imports: string[] = []
  const changed = text.replace(MADE_REQUIRE, (made: string, variable: string) => {
    const calls = text.matchAll(
      new RegExp(`(?<![\\w$.])${variable.replaceAll('$', '\\$')}\\(\\s*(["'])([^"'\\n]+)\\1\\s*\\)`, 'g'),
    )
    const names = [...new Set([...calls].map(([, , name]) => name!))]
    // The result is often called `require` itself, so the bundler's has to stand in another module.
    const entries = names.map((name) => {
      const load = `carpoolLoad${imports.length}_`
      imports.push(`import { load as ${load} } from ${JSON.stringify(`${REQUIRED}:${name}`)};`)
      return `${JSON.stringify(name)}: ${load}`
    })
    return `${made}, { ${entries.join(', ')} }`
  })
  return imports.length === 0 ? changed : `${changed}\n;${imports.join(' ')}`
}

const ASKED_MODULE = /\b(getBuiltinModule\s*(?:\?\.)?\s*\(\s*)((["'])((?:node:)?[\w/]+)\3)(?=\s*\))/g

/** Gives `process.getBuiltinModule('…')` the module, so that the bundler sees it. */
function withModules(text: string): string {
  // The same quotes: it may stand within a text.
  return text.replace(ASKED_MODULE, (asked: string, call: string, name: string, _quote: string, module: string) =>
    isBuiltin(module) ? `${call}${name}, () => require(${name})` : asked,
  )
}

const PLACE = '(?:__dirname|import\\.meta\\.dirname)'
const TEXT = '(?:"[^"\\n]*"|\'[^\'\\n]*\'|`[^`$\\n]*`)'
/** How code names files beside it; the groups are texts, the last of which may be a list. */
const NAMED = [
  new RegExp(`\\bnew\\s+URL\\(\\s*(${TEXT})\\s*,\\s*import\\.meta\\.url\\s*\\)`, 'g'),
  new RegExp(`\\b(?:join|resolve)\\(\\s*${PLACE}\\s*((?:,\\s*${TEXT}\\s*)+),?\\s*\\)`, 'g'),
  new RegExp(`${PLACE}\\s*\\+\\s*(${TEXT})`, 'g'),
  new RegExp(`(\`\\$\\{${PLACE}\\}[^\`$\\n]*\`)`, 'g'),
]
/** Paths that count from the working directory, which is the function's folder. */
const READ = new RegExp(
  `\\b(?:readFile|readFileSync|createReadStream|existsSync|stat|statSync|readdir|readdirSync)\\(\\s*(${TEXT})`,
  'g',
)

/** @returns what is wrong with the files that are named, if they are too many or too large */
async function noteAssets(text: string, path: string, folder: string, assets: Assets): Promise<string | undefined> {
  const isPackage = labelPath(path, folder).includes('node_modules/')
  const beside = NAMED.flatMap((pattern) => [...text.matchAll(pattern)].map(([, named]) => textsOf(named!).map(withoutPlace)))
  const here = beside.map((parts) => join(dirname(path), ...parts))
  const read = isPackage ? [] : [...text.matchAll(READ)].flatMap(([, named]) => textsOf(named!))
  const fromFolder = read.filter((named) => !isAbsolute(named)).map((named) => resolve(folder, named))
  if (here.length === 0 && fromFolder.length === 0) return undefined
  const roots = await rootsOf(path, folder, isPackage)
  for (const file of [...here, ...fromFolder]) {
    if (!(await isWithin(file, roots))) continue
    const tooMuch = await noteAsset(file, { folder, assets, isPackage, roots })
    if (tooMuch !== undefined) return tooMuch
  }
  return undefined
}

/**
 * Nothing else of this machine goes into a function, whatever its code names: of a package only what is its own, of the
 * function what is in its folder or its project. Without links.
 */
async function rootsOf(path: string, folder: string, isPackage: boolean): Promise<string[]> {
  const root = await packageFolder(isPackage ? dirname(path) : folder)
  const folders = isPackage ? [root] : [root, folder]
  return Promise.all(folders.filter((one) => one !== undefined).map((one) => realpath(one)))
}

/** Names of files and folders that have secrets. */
const SECRET = /^\.(?:env.*|npmrc|git|ssh)$/

/** A folder on the way may be a link that leads out of the function. */
async function isWithin(file: string, roots: readonly string[]): Promise<boolean> {
  const real = await realpath(file).catch(() => undefined)
  if (real === undefined) return false
  return roots.some((root) => real.startsWith(root + sep) && !hasSecrets(real.slice(root.length)))
}

function hasSecrets(path: string): boolean {
  return path.split(sep).some((name) => SECRET.test(name))
}

/** The nearest folder with a package.json. One that the home folder is in, or that it is, is no project. */
async function packageFolder(folder: string): Promise<string | undefined> {
  if (`${homedir()}${sep}`.startsWith(folder.endsWith(sep) ? folder : folder + sep)) return undefined
  const hasManifest = await stat(join(folder, 'package.json')).then(
    () => true,
    () => false,
  )
  if (hasManifest) return folder
  const parent = dirname(folder)
  return parent === folder || basename(parent) === 'node_modules' ? undefined : packageFolder(parent)
}

function textsOf(list: string): string[] {
  return [...list.matchAll(new RegExp(TEXT, 'g'))].map(([quoted]) => quoted.slice(1, -1))
}

function withoutPlace(text: string): string {
  return text.replace(/^\$\{[^}]*\}/, '').replace(/[?#].*$/, '')
}

interface Noted {
  readonly folder: string
  readonly assets: Assets
  readonly isPackage: boolean
  readonly roots: readonly string[]
}

/**
 * Of packages only single files that are no code: they often name whole folders, for other purposes.
 * @returns what is wrong, if a folder has too much
 */
async function noteAsset(file: string, { folder, assets, isPackage, roots }: Noted): Promise<string | undefined> {
  // A link may lead out of the function.
  const found = await lstat(file).catch(() => undefined)
  if (found === undefined) return undefined
  if (found.isFile()) {
    if (!isPackage || !/\.(?:[cm]?[jt]s|node)$/.test(file)) assets.set(virtualPath(file, folder), file)
    return undefined
  }
  // The function's own folder would be all of it.
  if (!found.isDirectory() || isPackage || folder.startsWith(file)) return undefined
  let files = 0
  let bytes = 0
  for (const entry of await readdir(file, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || path.includes('node_modules') || !(await isWithin(path, roots))) continue
    files++
    bytes += (await stat(path)).size
    if (files > MOST_FILES || bytes > MOST_BYTES) {
      const limit = `a folder that code names goes into the function with at most ${MOST_FILES} files and ${MOST_BYTES / 2 ** 20} MiB`
      return `the folder ${labelPath(file, folder)} has more; ${limit}`
    }
    assets.set(virtualPath(path, folder), path)
  }
  return undefined
}

/** The module `carpool-node:assets` with the files in it. */
export async function assetsModule(assets: Assets): Promise<string> {
  const entries = await Promise.all(
    [...assets]
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(async ([path, file]) => {
        const bytes = await readFile(file)
        const text = bytes.toString()
        const value = Buffer.from(text).equals(bytes) ? text : { base64: bytes.toString('base64') }
        return `${JSON.stringify(path)}: ${JSON.stringify(value)}`
      }),
  )
  return `export default { ${entries.join(',\n')} }`
}
