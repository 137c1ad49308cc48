import type { Revision } from '@carpool/core'
import { originOf, type SourceMapIndex } from './source-map-index.ts'
import { readSourceMap } from './read-source-map.ts'

export interface SourceMapperOptions {
  /** Most bytes of source map text whose maps are kept. Default: 32 MiB. */
  readonly maxCachedBytes?: number
  /** Larger source maps are left aside. In bytes; default: that of {@link readSourceMap}. */
  readonly maxMapBytes?: number
}

interface CachedMap {
  readonly map: Promise<SourceMapIndex | undefined>
  /** Size of the text; grows from the least when it has been read. */
  bytes: number
}

const MIB = 1024 * 1024
/** What an entry counts for at least, so that those without a map are bounded too. */
const MIN_ENTRY_BYTES = 1024
/** Positions of one text that are mapped: they are the author's, and the server has no time for thousands. */
const MAX_POSITIONS = 100

/** Rewrites positions in the bundle of a revision to positions in the author's files. Keeps the maps that were used last. */
export class SourceMapper {
  readonly #read: (revision: Revision) => Promise<string>
  readonly #maxCachedBytes: number
  readonly #maxMapBytes: number | undefined
  /** The one that was used last is at the end. */
  readonly #cached = new Map<string, CachedMap>()
  #cachedBytes = 0

  constructor(read: (revision: Revision) => Promise<string>, options: SourceMapperOptions = {}) {
    this.#read = read
    this.#maxCachedBytes = options.maxCachedBytes ?? 32 * MIB
    this.#maxMapBytes = options.maxMapBytes
  }

  /** Maps a stack of a published revision. Without a readable source map the stack stays as it is. Never rejects. */
  async map(revision: Revision, stack: string): Promise<string> {
    const map = await this.#mapOf(revision)
    return map === undefined ? stack : mapStack(stack, revision.functionName, map)
  }

  /** The same for a text in which stacks may stand: only their frames change. */
  async mapFrames(revision: Revision, text: string): Promise<string> {
    const map = await this.#mapOf(revision)
    return mapFrames(text, revision.functionName, map)
  }

  #mapOf(revision: Revision): Promise<SourceMapIndex | undefined> {
    const { id } = revision
    const cached = this.#cached.get(id)
    if (cached !== undefined) {
      this.#cached.delete(id)
      this.#cached.set(id, cached)
      return cached.map
    }
    const entry: CachedMap = { map: Promise.resolve().then(() => this.#load(revision, entry)), bytes: MIN_ENTRY_BYTES }
    this.#cached.set(id, entry)
    this.#cachedBytes += entry.bytes
    this.#evict()
    return entry.map
  }

  async #load(revision: Revision, entry: CachedMap): Promise<SourceMapIndex | undefined> {
    let bytes = 0
    const read = async (): Promise<string> => {
      const text = await this.#read(revision)
      bytes = Buffer.byteLength(text)
      return text
    }
    let map: SourceMapIndex | undefined
    try {
      map = await readSourceMap(revision.owner, read, this.#maxMapBytes)
    } catch {
      // The next reading may succeed.
      this.#drop(revision.id, entry)
      return undefined
    }
    if (map !== undefined && bytes > entry.bytes && this.#cached.get(revision.id) === entry) {
      this.#cachedBytes += bytes - entry.bytes
      entry.bytes = bytes
      this.#evict()
    }
    return map
  }

  #evict(): void {
    for (const [id, entry] of this.#cached) {
      if (this.#cachedBytes <= this.#maxCachedBytes) return
      this.#drop(id, entry)
    }
  }

  #drop(id: string, entry: CachedMap): void {
    if (this.#cached.get(id) !== entry) return
    this.#cached.delete(id)
    this.#cachedBytes -= entry.bytes
  }
}

/** Replaces `<function>.js:line:column` by the author's file and position, and drops the frames that are of Carpool. */
export function mapStack(stack: string, functionName: string, map: SourceMapIndex): string {
  const own = stack.split('\n').filter((line) => !isOfRuntime(line))
  return withoutModules(mapPositions(own.join('\n'), functionName, map).split('\n')).join('\n')
}

/**
 * Whether {@link mapStack} may have something to do: to read a map takes tens of ms, and limits say nothing of positions.
 */
export function mayHavePositions(text: string): boolean {
  return mayHaveFrames(text) || /:\d+:\d/.test(text)
}

/** Whether {@link mapFrames} may have something to do. */
export function mayHaveFrames(text: string): boolean {
  return text.includes('    at ')
}

/** The same for the frames in a text, whose other lines are none of ours. Without a map the author's frames stay as they are. */
export function mapFrames(text: string, functionName: string, map: SourceMapIndex | undefined): string {
  const own = text.split('\n').filter((line) => !isFrame(line) || !isOfRuntime(line))
  if (map === undefined) return own.join('\n')
  const mapped = mapPositions(own.filter(isFrame).join('\n'), functionName, map).split('\n')
  return withoutModules(own.map((line) => (isFrame(line) ? mapped.shift()! : line))).join('\n')
}

/**
 * Where the sources of the modules of Node.js stand that are ours, and of what a bundle has of the bundler (its label-path.ts).
 */
const BUNDLER_SOURCES = 'node_modules/@carpool/bundler/'

function withoutModules(lines: readonly string[]): string[] {
  return lines.filter((line) => !isFrame(line) || !line.includes(BUNDLER_SOURCES))
}

function isFrame(line: string): boolean {
  return line.trimStart().startsWith('at ')
}

function isOfRuntime(line: string): boolean {
  return line.includes('carpool:runtime')
}

function mapPositions(text: string, functionName: string, map: SourceMapIndex): string {
  let left = MAX_POSITIONS
  const position = new RegExp(`(?:<isolated-vm>|${functionName}\\.js):(\\d+):(\\d+)`, 'g')
  return text.replace(position, (whole, lineNumber: string, column: string) => {
    if (left-- <= 0) return whole
    const origin = originOf(map, Number(lineNumber) - 1, Number(column) - 1)
    return origin === undefined ? whole : `${origin.source}:${origin.line + 1}:${origin.column + 1}`
  })
}
