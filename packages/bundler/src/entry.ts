import { CarpoolError } from '@carpool/core'
import { readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, extname, join, resolve } from 'node:path'
import type { FunctionConfig } from './config.ts'

/** In the order in which they are looked for. */
const EXTENSIONS = ['.ts', '.tsx', '.mts', '.js', '.mjs', '.cjs', '.jsx', '.cts']

/** What the caller pointed at. Paths are absolute, without symbolic links. */
export interface Place {
  readonly folder: string
  /** Absent if the caller pointed at a folder. */
  readonly file?: string
  /** As the caller wrote it. */
  readonly shown: string
}

export interface Entry extends Place {
  readonly file: string
  readonly handlerExport?: string
  /** Files that were read to find the entry. */
  readonly read: readonly string[]
}

/** @throws CarpoolError `entry-not-found` */
export async function locate(path: string): Promise<Place> {
  const real = await realpath(resolve(path)).catch(() => undefined)
  if (real === undefined) throw notFound(`There is no file or folder ${path}.`)
  if ((await stat(real)).isDirectory()) return { folder: real, shown: path }
  if (!EXTENSIONS.includes(extname(real))) throw notFound(`${path} is no source file: the name must end in ${list(EXTENSIONS)}.`)
  return { folder: dirname(real), file: real, shown: path }
}

/**
 * Finds the entry file: what the caller pointed at, `entry` of the config, the file of a handler string, `module` or `main` of
 * package.json, `index.*`, `src/index.*`. A handler string of the caller comes before the config's `entry`.
 * @throws CarpoolError `entry-not-found`, saying what was looked for; `invalid-config`
 */
export async function findEntry(place: Place, config: FunctionConfig, givenHandler?: string): Promise<Entry> {
  const handlerText = givenHandler ?? config.handler
  const handler = handlerText === undefined ? undefined : parseHandler(handlerText)
  const handlerExport = handler && { handlerExport: handler.handlerExport }
  const found = (file: string, read: readonly string[] = []): Entry => ({ ...place, ...handlerExport, file, read })

  if (place.file !== undefined) {
    checkSameFile(place.file, handler?.stem, handlerText)
    return found(place.file)
  }
  if (config.entry !== undefined && (givenHandler === undefined || handler?.stem === undefined)) {
    const file = await firstFile([join(place.folder, config.entry)])
    if (file === undefined)
      throw notFound(`The config of ${place.shown} names the entry ${JSON.stringify(config.entry)}; there is no such file.`)
    return found(file)
  }
  if (handler?.stem !== undefined) {
    const file = await firstFile(withExtensions(join(place.folder, handler.stem)))
    if (file === undefined) {
      throw notFound(
        `The handler ${handlerText} names the file ${handler.stem} in ${place.shown}; there is none that ends in ${list(EXTENSIONS)}.`,
      )
    }
    return found(file)
  }
  const manifest = await readManifest(place)
  const named = (['module', 'main'] as const).flatMap((field) => manifest.paths[field] ?? [])
  const candidates = [...named.flatMap((path) => candidatesOf(join(place.folder, path))), ...indexFiles(place.folder)]
  const file = await firstFile(candidates)
  if (file !== undefined) return found(file, manifest.read)
  throw notFound(
    `${place.shown} has no entry file. Looked for "entry" in carpool.config.*, "module" and "main" in package.json` +
      `${named.length === 0 ? '' : ` (${named.join(', ')})`}, index.* and src/index.* with ${list(EXTENSIONS)}.`,
  )
}

function checkSameFile(file: string, stem: string | undefined, handler: string | undefined): void {
  if (stem === undefined || basename(stem) === basename(file, extname(file))) return
  throw notFound(`The handler ${handler} names the file ${stem}, but ${basename(file)} is to be bundled.`)
}

async function readManifest({ folder, shown }: Place): Promise<{ paths: { module?: string; main?: string }; read: string[] }> {
  const path = join(folder, 'package.json')
  const text = await readFile(path, 'utf8').catch(() => undefined)
  if (text === undefined) return { paths: {}, read: [] }
  try {
    const { module, main } = JSON.parse(text) as { module?: unknown; main?: unknown }
    return { paths: { ...(typeof module === 'string' && { module }), ...(typeof main === 'string' && { main }) }, read: [path] }
  } catch (cause) {
    throw new CarpoolError('invalid-config', `package.json of ${shown} is no valid JSON: ${(cause as Error).message}`, { cause })
  }
}

/** A path as package.json may give it: a file, a file without its extension, or a folder. */
function candidatesOf(path: string): string[] {
  return [path, ...withExtensions(path), ...withExtensions(join(path, 'index'))]
}

function indexFiles(folder: string): string[] {
  return [...withExtensions(join(folder, 'index')), ...withExtensions(join(folder, 'src', 'index'))]
}

function withExtensions(stem: string): string[] {
  return EXTENSIONS.map((extension) => stem + extension)
}

async function firstFile(candidates: readonly string[]): Promise<string | undefined> {
  for (const path of candidates) {
    const isFile = await stat(path).then(
      (found) => found.isFile(),
      () => false,
    )
    if (isFile) return path
  }
  return undefined
}

function list(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}

function notFound(detail: string): CarpoolError {
  return new CarpoolError('entry-not-found', detail)
}

export interface HandlerString {
  /** File without its extension, relative to the folder; absent if only the export was given. */
  readonly stem?: string
  readonly handlerExport: string
}

const EXPORT_PATTERN = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

/**
 * Reads `src/index.handler` as AWS Lambda does: a file without its extension and, after the last dot, one of its exports.
 * @throws CarpoolError `invalid-config`
 */
export function parseHandler(text: string): HandlerString {
  const dot = text.lastIndexOf('.')
  const stem = text.slice(0, Math.max(dot, 0))
  const handlerExport = text.slice(dot + 1)
  const valid = EXPORT_PATTERN.test(handlerExport) && (dot === -1 || (stem !== '' && !/[./\\]$/.test(stem)))
  if (!valid) {
    throw new CarpoolError(
      'invalid-config',
      `The handler ${JSON.stringify(text)} is not valid: write a file without its extension and an export, such as "src/index.handler", or only the export.`,
    )
  }
  return stem === '' ? { handlerExport } : { stem, handlerExport }
}

const LONGEST_NAME = 63

/** A function name made from a folder's name, or from a file's; the folder's if the file is called `index`. */
export function suggestName({ folder, file }: Place): string {
  const stem = file === undefined ? undefined : basename(file, extname(file))
  return toName(stem === undefined || stem === 'index' ? basename(folder) : stem)
}

function toName(text: string): string {
  const name = text
    .normalize('NFKD')
    .replace(/\p{Mark}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, LONGEST_NAME)
    .replace(/^-+|-+$/g, '')
  return name === '' ? 'function' : name
}
