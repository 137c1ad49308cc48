import { appendFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { openFile } from './files.ts'

export interface RotatingFileOptions {
  /** Size at which the file becomes the first of the older ones, in bytes; a single text may be larger. */
  readonly maxFileBytes: number
  /** Older files that are kept; at least 1. */
  readonly olderFiles: number
}

const NEWLINE = 0x0a

/**
 * A file that lines are appended to, with a few older ones behind it, for its user alone (mode 600). It is open only during a
 * write, so ten thousand of them hold no descriptors. The caller waits for one call to settle before the next.
 */
export class RotatingFile {
  readonly #path: string
  readonly #options: RotatingFileOptions
  /** Undefined until it was measured, and after a failure. */
  #sizeBytes: number | undefined
  /** The file may end in the middle of a line. */
  #isTorn = false

  /** @param path of the newest file; the older ones have a number before its ending: `audit.1.ndjson` for `audit.ndjson` */
  constructor(path: string, options: RotatingFileOptions) {
    this.#path = path
    this.#options = options
  }

  /** From the newest file to the oldest; not all need exist. */
  get paths(): string[] {
    return Array.from({ length: this.#options.olderFiles + 1 }, (_, age) =>
      age === 0 ? this.#path : this.#path.replace(/(\.\w+)?$/, `.${age}$1`),
    )
  }

  /** @param text whole lines @throws Error of the system */
  async append(text: string): Promise<void> {
    const bytes = Buffer.byteLength(text)
    try {
      this.#sizeBytes ??= await this.#measure()
      if (this.#sizeBytes > 0 && this.#sizeBytes + bytes > this.#options.maxFileBytes) await this.#rotate()
      // The process that wrote before may have been killed in the middle.
      const start = this.#isTorn ? '\n' : ''
      await appendFile(this.#path, start + text, { mode: 0o600 })
      this.#isTorn = false
      this.#sizeBytes += start.length + bytes
    } catch (cause) {
      this.#sizeBytes = undefined
      throw cause
    }
  }

  /** Deletes all files. @throws Error of the system */
  async erase(): Promise<void> {
    this.#sizeBytes = undefined
    await Promise.all(this.paths.map((path) => rm(path, { force: true })))
  }

  async #rotate(): Promise<void> {
    const { paths } = this
    for (let age = paths.length - 2; age >= 0; age--) {
      await rename(paths[age]!, paths[age + 1]!).catch((cause: NodeJS.ErrnoException) => {
        if (cause.code !== 'ENOENT') throw cause
      })
    }
    this.#sizeBytes = 0
    this.#isTorn = false
  }

  async #measure(): Promise<number> {
    await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
    const file = await open(this.#path, 'a+', 0o600)
    try {
      const { size } = await file.stat()
      const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
      this.#isTorn = size > 0 && bytesRead > 0 && buffer[0] !== NEWLINE
      return size
    } finally {
      await file.close()
    }
  }
}

const BLOCK_BYTES = 64 * 1024

/**
 * The last lines of files with one JSON object a line, oldest first. No more of the files is read than that takes.
 * @param paths from the newest file to the oldest; a missing file is an empty one
 * @throws CarpoolError `data-unusable` if one is a folder or the like; Error of the system
 */
export async function readLastLines<T>(paths: readonly string[], limit: number): Promise<T[]> {
  let newest: T[] = []
  for (const path of paths) {
    if (newest.length >= limit) break
    newest = [...(await readTail<T>(path, limit - newest.length)), ...newest]
  }
  return newest
}

async function readTail<T>(path: string, limit: number): Promise<T[]> {
  const file = await openFile(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return undefined
    throw cause
  })
  if (file === undefined) return []
  try {
    const blocks: Buffer[] = []
    let start = (await file.stat()).size
    for (let newlines = 0; start > 0 && newlines <= limit; ) {
      const length = Math.min(BLOCK_BYTES, start)
      start -= length
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, start)
      const block = buffer.subarray(0, bytesRead)
      blocks.unshift(block)
      newlines += block.reduce((count, byte) => (byte === NEWLINE ? count + 1 : count), 0)
    }
    const lines = Buffer.concat(blocks).toString('utf8').split('\n')
    // Reading began in the middle of the first one.
    if (start > 0) lines.shift()
    return lines.flatMap((line) => parsed<T>(line)).slice(-limit)
  } finally {
    await file.close()
  }
}

/** A process that was killed leaves a line cut short: it is left out, as all that is no object. */
function parsed<T>(line: string): T[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line) as T] : []
  } catch {
    return []
  }
}
