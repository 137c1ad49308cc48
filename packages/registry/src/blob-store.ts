import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { openFile } from '@carpool/storage'

/** What a blob is: also the ending of its file name. */
export type BlobKind = 'js' | 'map' | 'cache'

export interface BlobName {
  readonly kind: BlobKind
  /** SHA-256 of the content, in hex. */
  readonly hash: string
}

const BLOB_FILE = /^([0-9a-f]{64})\.(js|map|cache)$/

/**
 * Files named after their content. A file appears under its name only when it is whole and on the disk, so that a server killed
 * at any point leaves at most a temporary file behind.
 */
export class BlobStore {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** Writes the content unless an undamaged copy is there. */
  async put({ kind, hash }: BlobName, content: Uint8Array): Promise<void> {
    const path = this.#path({ kind, hash })
    if ((await this.get({ kind, hash })) !== undefined) return
    const temporary = join(this.#folder, `${randomUUID()}.tmp`)
    try {
      const file = await open(temporary, 'wx', 0o600)
      try {
        await file.writeFile(content)
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(temporary, path)
    } catch (cause) {
      await unlink(temporary).catch(() => {})
      throw cause
    }
    await this.#syncFolder()
  }

  /** The content; undefined if there is no file, or one that does not match its hash. */
  async get(name: BlobName): Promise<Buffer | undefined> {
    try {
      const file = await openFile(this.#path(name))
      try {
        const content = await file.readFile()
        return contentHash(content) === name.hash ? content : undefined
      } finally {
        await file.close()
      }
    } catch (cause) {
      const { code = '' } = cause as NodeJS.ErrnoException
      if (['ENOENT', 'data-unusable'].includes(code)) return undefined
      throw cause
    }
  }

  /** Whether a file of this size is there. Does not read it. */
  has(name: BlobName, sizeBytes: number): boolean {
    return statSync(this.#path(name), { throwIfNoEntry: false })?.size === sizeBytes
  }

  /** Synchronous, so that nothing can start to use the blob between the caller's check and the removal. */
  remove(name: BlobName): void {
    tryToDelete(this.#path(name))
  }

  /** Removes temporary files, and every blob that nothing needs. Only before the first `put`. */
  sweep(isNeeded: (name: BlobName) => boolean): void {
    for (const file of readdirSync(this.#folder)) {
      const [, hash, kind] = BLOB_FILE.exec(file) ?? []
      const orphan = hash === undefined ? file.endsWith('.tmp') : !isNeeded({ kind: kind as BlobKind, hash })
      if (orphan) tryToDelete(join(this.#folder, file))
    }
  }

  #path({ kind, hash }: BlobName): string {
    return join(this.#folder, `${hash}.${kind}`)
  }

  async #syncFolder(): Promise<void> {
    const folder = await open(this.#folder, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}

function tryToDelete(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // What cannot be deleted now is swept at the next start; a folder, which is none of ours, stays.
  }
}

/** SHA-256 in hex. */
export function contentHash(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}
