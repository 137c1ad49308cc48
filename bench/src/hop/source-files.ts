import { realpathSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { CallFrame } from './profile-types.ts'

/** Where esbuild begins a file in a bundle. */
const BUNDLED_FILE = /^\/\/ (\S+\.[cm]?[jt]s)$/
/** The host's program is bundled from this folder, and names files from there. */
const BUNDLE_FOLDER = 'host/src'

/**
 * Names the file of a function by its path from the root of the checkout; what Node.js brings along as `node:…`, what is built in
 * not at all.
 */
export class SourceFiles {
  readonly #root: string
  readonly #bundles = new Map<string, readonly BundledFile[]>()

  /** @param sources code that has no file of its own, by script id */
  constructor(checkout: string, sources: Readonly<Record<string, string>>) {
    this.#root = pathToFileURL(`${realpathSync(checkout)}/`).href
    for (const [scriptId, code] of Object.entries(sources)) this.#bundles.set(scriptId, bundledFiles(code))
  }

  fileOf({ scriptId, url, lineNumber }: CallFrame): string {
    const files = this.#bundles.get(scriptId)
    if (files !== undefined) return files.findLast(({ firstLine }) => firstLine <= lineNumber)?.path ?? ''
    const href = url.startsWith('/') ? pathToFileURL(url).href : url
    if (!href.startsWith(this.#root)) return href
    return fileURLToPath(href).slice(fileURLToPath(this.#root).length)
  }
}

interface BundledFile {
  readonly path: string
  /** From 0. */
  readonly firstLine: number
}

/** The files of a bundle, in its order. */
export function bundledFiles(code: string): BundledFile[] {
  return code.split('\n').flatMap((line, firstLine) => {
    const name = BUNDLED_FILE.exec(line)?.[1]
    return name === undefined ? [] : [{ path: posix.join(BUNDLE_FOLDER, name), firstLine }]
  })
}
