import type { BlobName } from './blob-store.ts'

/** Blobs that no record names yet because a deploy is at work on them: they are not collected. */
export class BlobClaims {
  readonly #claims = new Set<readonly BlobName[]>()

  /** Holds until `release` is called with the same array. */
  add(blobs: readonly BlobName[]): void {
    this.#claims.add(blobs)
  }

  release(blobs: readonly BlobName[]): void {
    this.#claims.delete(blobs)
  }

  has({ kind, hash }: BlobName): boolean {
    return [...this.#claims].some((blobs) => blobs.some((blob) => blob.kind === kind && blob.hash === hash))
  }
}
