import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs'
import { open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { CarpoolError } from '@carpool/core'
import { openFile } from '@carpool/storage'

/** What a blob is: also the ending of its file name. */
export type BlobKind = 'js' | 'map' | 'cache'

export interface BlobName {
  readonly kind: BlobKind
  /** SHA-256 of the content, in hex. */
  readonly hash: string
}

/** What a file system has, in bytes. */
export interface DiskSpace {
  readonly freeBytes: number
  readonly totalBytes: number
}

const MIB = 1024 * 1024
/** Kept free for the ledger, without which no call is served: the smaller of the two. */
const MAX_RESERVE_BYTES = 1024 * 1024 * 1024
const RESERVE_PART = 0.05

const BLOB_FILE = /^([0-9a-f]{64})\.(js|map|cache)$/

/**
 * Files named after their content. A file appears under its name only when it is whole and on the disk, so that a server killed
 * at any point leaves at most a temporary file behind.
 */
export class BlobStore {
  readonly #folder: string
  readonly #diskSpace: () => DiskSpace
  /** Of what is being written: the disk may not have them yet. */
  #underWayBytes = 0

  /** @param diskSpace of the folder. Default: what the system says */
  constructor(folder: string, diskSpace = () => spaceOf(folder)) {
    this.#folder = folder
    this.#diskSpace = diskSpace
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  }

  /** @throws CarpoolError `saturated` if so many bytes more would take of what is kept for the ledger */
  requireRoom(bytes: number): void {
    const { freeBytes, totalBytes } = this.#diskSpace()
    // Some file systems do not say.
    if (totalBytes === 0) return
    const reserveBytes = Math.min(MAX_RESERVE_BYTES, totalBytes * RESERVE_PART)
    if (freeBytes - this.#underWayBytes - bytes >= reserveBytes) return
    throw new CarpoolError(
      'saturated',
      `The disk of the data folder has no room for ${bytes} bytes more: ${Math.ceil(reserveBytes / MIB)} MiB are kept free for the ` +
        'records of calls. Delete functions, or make room.',
    )
  }

  /** Writes the content unless an undamaged copy is there. @throws CarpoolError as {@link BlobStore.requireRoom} */
  async put({ kind, hash }: BlobName, content: Uint8Array): Promise<void> {
    const path = this.#path({ kind, hash })
    if ((await this.get({ kind, hash })) !== undefined) return
    this.requireRoom(content.length)
    this.#underWayBytes += content.length
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
    } finally {
      this.#underWayBytes -= content.length
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

function spaceOf(folder: string): DiskSpace {
  const { bsize, bavail, blocks } = statfsSync(folder)
  return { freeBytes: bsize * bavail, totalBytes: bsize * blocks }
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
