import { appendFile, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface RotatingFileOptions {
  /** Size at which the file becomes the first of the older ones, in bytes; a single text may be larger. */
  readonly maxFileBytes: number
  /** Older files that are kept; at least 1. */
  readonly olderFiles: number
}

const NEWLINE = 0x0a

/**
 * A file that lines are appended to, with a few older ones behind it, for its user alone (mode 600). It is open only as long as a write takes, so that ten
 * thousand of them hold no descriptors. One thing at a time: the caller waits for one call to settle before the next.
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
      // Whoever wrote before us may have been killed in the middle.
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
