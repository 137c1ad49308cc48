import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { CarpoolError, checkFunctionName, type HandlerForm, type Revision } from '@carpool/core'
import { BlobStore, contentHash, type BlobName } from './blob-store.ts'
import { openDatabase } from './database.ts'
import { DisabledFunctions, functionDisabled, type DisabledInfo } from './disabled-functions.ts'
import { damaged, functionNotFound, type PublishInput, type RegistryOptions, type RouteChange } from './registry-types.ts'
import { RevisionTable, type CodeCacheRow } from './revision-table.ts'
import { checkedContents, revisionId, type StagedRevision, type StageInput } from './staging.ts'

/** Which revision answers to which name. Routes are in memory; what they stand for is on disk before they change. */
export class Registry {
  readonly #options: RegistryOptions
  readonly #database: DatabaseSync
  readonly #table: RevisionTable
  readonly #blobs: BlobStore
  readonly #routes = new Map<string, Revision>()
  /** Live revisions that were found without a sound bundle. */
  readonly #damaged = new Map<string, Revision>()
  readonly #disabled: DisabledFunctions
  readonly #listeners = new Set<(change: RouteChange) => void>()
  /** Blobs that no record names yet, by the staged revision or code cache that needs them: they are not collected. */
  readonly #claims = new Map<object, readonly BlobName[]>()

  constructor(database: DatabaseSync, blobs: BlobStore, options: RegistryOptions) {
    this.#options = options
    this.#database = database
    this.#table = new RevisionTable(database)
    this.#disabled = new DisabledFunctions(database)
    this.#blobs = blobs
    this.#table.dropCodeCachesExcept(options.codeCacheKey)
    blobs.sweep((name) => this.#table.isReferenced(name))
    for (const { revision } of this.#table.live()) {
      if (blobs.has({ kind: 'js', hash: revision.codeHash }, revision.codeBytes)) {
        this.#routes.set(revision.functionName, revision)
      } else {
        this.#damaged.set(revision.functionName, revision)
        this.#report(revision, 'The bundle is missing or damaged: the function does not answer until it is deployed again.')
      }
    }
  }

  /**
   * The live revision of a function, also while it is disabled. Does no I/O.
   * @throws CarpoolError `not-found`, `data-unusable`
   */
  route(name: string): Revision {
    const revision = this.#routes.get(name)
    if (revision !== undefined) return revision
    const unusable = this.#damaged.get(name)
    throw unusable === undefined ? functionNotFound(name) : damaged('bundle', unusable)
  }

  /** @throws CarpoolError `function-disabled` */
  checkEnabled(name: string): void {
    const info = this.#disabled.get(name)
    if (info !== undefined) throw functionDisabled(name, info)
  }

  /** The owner of a function, also while it cannot be used; undefined if there is none. */
  ownerOf(name: string): string | undefined {
    return (this.#routes.get(name) ?? this.#damaged.get(name))?.owner
  }

  find(name: string): Revision | undefined {
    return this.#routes.get(name)
  }

  /** The live revisions, by name. */
  list(): Revision[] {
    return [...this.#routes.values()].toSorted((a, b) => (a.functionName < b.functionName ? -1 : 1))
  }

  /** The kept revisions of a function, the last published first. */
  history(name: string): Revision[] {
    return this.#table.history(name).map(({ revision }) => revision)
  }

  /**
   * Writes a revision's code and source map to disk without making it live. Whoever stages publishes or discards.
   * @throws CarpoolError `invalid-name`, `bundle-empty`, `bundle-too-large`; `saturated` if the disk has no room for them
   */
  async stage({ functionName, owner, code, sourceMap, config }: StageInput): Promise<StagedRevision> {
    checkFunctionName(functionName)
    const [codeContent, mapContent] = checkedContents({ functionName, code, sourceMap }, this.#options)
    const codeHash = contentHash(codeContent)
    const sourceMapHash = contentHash(mapContent)
    const staged: StagedRevision = Object.freeze({
      ...config,
      id: revisionId({ functionName, owner }, codeHash, config),
      functionName,
      owner,
      codeBytes: codeContent.length,
      codeHash,
      sourceMapHash,
    })
    const bundle: BlobName = { kind: 'js', hash: codeHash }
    const map: BlobName = { kind: 'map', hash: sourceMapHash }
    this.#claims.set(staged, [bundle, map])
    try {
      // One after the other: what is written of two when one fails would come back behind the discarding.
      await this.#blobs.put(map, mapContent)
      await this.#blobs.put(bundle, codeContent)
    } catch (cause) {
      this.discard(staged)
      throw cause
    }
    return staged
  }

  /** @throws CarpoolError `saturated` if the disk has nothing but what is kept for the ledger */
  requireRoom(): void {
    this.#blobs.requireRoom(0)
  }

  /** Gives up a staged revision. Without effect on one that was published or discarded before. */
  discard(staged: StagedRevision): void {
    this.#collect(this.#release(staged))
  }

  /**
   * Makes a staged revision the live one: first on disk, then in the routes. To publish what is already live changes no route.
   * A code cache for which the disk has no room is left out: it can be made again.
   * @throws CarpoolError `internal` if it is not staged
   */
  async publish(staged: StagedRevision, { form, codeCache }: PublishInput): Promise<Revision> {
    if (!this.#claims.has(staged)) {
      throw new CarpoolError('internal', `Revision ${staged.id} of ${staged.functionName} is not staged.`)
    }
    const cache = codeCache === undefined ? undefined : await this.#putCodeCache(codeCache).catch(ifNoRoom)
    try {
      return this.#commit(staged, form, cache)
    } finally {
      if (cache !== undefined) this.#claims.delete(cache)
    }
  }

  /**
   * Refuses the calls of a function until it is enabled: a new deploy of its owner does not end that, and neither does deleting
   * it. One that is disabled already keeps its reason.
   * @param reason completes "it is disabled because …"
   * @throws CarpoolError `not-found`; what the database throws if it cannot be written: then it is in force until a restart
   */
  disable(name: string, { reason }: { readonly reason: string }): void {
    const owner = this.ownerOf(name)
    if (owner === undefined) throw functionNotFound(name)
    this.#disabled.add(name, { owner, reason, at: this.#now().toISOString() })
  }

  /** Takes the calls of a function again. Without effect on one that is not disabled. @throws CarpoolError `not-found` */
  enable(name: string): void {
    if (this.ownerOf(name) === undefined && this.#disabled.get(name) === undefined) throw functionNotFound(name)
    this.#disabled.remove(name)
  }

  /** Why and since when calls of a function are refused; undefined if they are not. */
  disabledInfo(name: string): DisabledInfo | undefined {
    return this.#disabled.get(name)
  }

  /** Forgets a function with all its revisions. @throws CarpoolError `not-found` */
  remove(name: string): void {
    const unreferenced = this.#table.remove(name)
    if (unreferenced === undefined) throw functionNotFound(name)
    // A damaged one has something to be cleaned up as well, such as its log.
    const previous = this.#routes.get(name) ?? this.#damaged.get(name)
    this.#routes.delete(name)
    this.#damaged.delete(name)
    this.#emit({ functionName: name, ...(previous && { previous }) })
    this.#collect(unreferenced)
  }

  /**
   * The bundle of a revision, with its code cache if a sound one is there.
   * @throws CarpoolError `data-unusable` if the bundle is missing or damaged
   */
  async code(revision: Revision | StagedRevision): Promise<{ source: string; codeCache?: Uint8Array }> {
    const content = await this.#blobs.get({ kind: 'js', hash: revision.codeHash })
    if (content === undefined) throw damaged('bundle', revision)
    const codeCache = await this.#codeCache(revision)
    return { source: content.toString('utf8'), ...(codeCache === undefined ? {} : { codeCache }) }
  }

  /**
   * Keeps a code cache of a live revision, in place of the one that it had, if any. Without effect if it is not live any more.
   * @returns whether it is kept
   */
  async replaceCodeCache(revision: Revision, codeCache: Uint8Array): Promise<boolean> {
    const isLive = (): boolean => this.#routes.get(revision.functionName)?.id === revision.id
    if (!isLive()) return false
    const cache = await this.#putCodeCache(codeCache)
    let unreferenced: readonly BlobName[] = [cache]
    const isKept = isLive()
    try {
      if (isKept) unreferenced = this.#table.setCodeCache(revision, this.#rowOf(cache))
    } finally {
      this.#claims.delete(cache)
      this.#collect(unreferenced)
    }
    return isKept
  }

  /** Source map v3 of a published revision. @throws CarpoolError `not-found`, `data-unusable` */
  async sourceMap(revision: Revision): Promise<string> {
    const hash = this.#table.sourceMapHash(revision.functionName, revision.id)
    if (hash === undefined) throw functionNotFound(revision.functionName)
    const content = await this.#blobs.get({ kind: 'map', hash })
    if (content === undefined) throw damaged('source map', revision)
    return content.toString('utf8')
  }

  /** Calls the listener after each change of a route, in order. It must not throw. Returns what stops it. */
  onRouteChange(listener: (change: RouteChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#database.close()
  }

  #commit(staged: StagedRevision, form: HandlerForm, cache: BlobName | undefined): Revision {
    const { sourceMapHash, ...content } = staged
    const previous = this.#routes.get(staged.functionName)
    const isLive = previous?.id === staged.id
    const createdAt = isLive ? previous.createdAt : this.#now().toISOString()
    const revision: Revision = Object.freeze({ ...content, form, createdAt })
    const unreferenced = this.#table.publish(
      { revision, sourceMapHash },
      cache === undefined ? undefined : this.#rowOf(cache),
      this.#options.historyLimit ?? 10,
    )
    if (this.#disabled.get(revision.functionName)?.owner !== revision.owner) this.#disabled.remove(revision.functionName)
    this.#routes.set(revision.functionName, revision)
    this.#damaged.delete(revision.functionName)
    this.#release(staged)
    if (!isLive) this.#emit({ functionName: revision.functionName, current: revision, ...(previous && { previous }) })
    this.#collect(unreferenced)
    return revision
  }

  #rowOf({ hash }: BlobName): CodeCacheRow {
    return { versionKey: this.#options.codeCacheKey, hash }
  }

  /** Its blob is claimed until the caller deletes the claim. */
  async #putCodeCache(content: Uint8Array): Promise<BlobName> {
    const blob: BlobName = { kind: 'cache', hash: contentHash(content) }
    this.#claims.set(blob, [blob])
    try {
      await this.#blobs.put(blob, content)
    } catch (cause) {
      this.#claims.delete(blob)
      throw cause
    }
    return blob
  }

  async #codeCache(revision: Revision | StagedRevision): Promise<Uint8Array | undefined> {
    const hash = this.#table.codeCacheHash(revision.functionName, revision.id)
    if (hash === undefined) return undefined
    const content = await this.#blobs.get({ kind: 'cache', hash })
    if (content === undefined) this.#report(revision, 'The code cache is missing or damaged: the code is compiled without it.')
    return content
  }

  #release(staged: StagedRevision): readonly BlobName[] {
    const blobs = this.#claims.get(staged) ?? []
    this.#claims.delete(staged)
    return blobs
  }

  /** Deletes those of the blobs that no record and no running deploy needs. */
  #collect(blobs: readonly BlobName[]): void {
    const claimed = [...this.#claims.values()].flat()
    for (const blob of blobs) {
      const isClaimed = claimed.some(({ kind, hash }) => kind === blob.kind && hash === blob.hash)
      if (!isClaimed && !this.#table.isReferenced(blob)) this.#blobs.remove(blob)
    }
  }

  #now(): Date {
    return this.#options.now?.() ?? new Date()
  }

  #emit(change: RouteChange): void {
    for (const listener of this.#listeners) listener(change)
  }

  #report({ functionName, id }: Revision | StagedRevision, detail: string): void {
    this.#options.onProblem?.({ functionName, revision: id, detail })
  }
}

function ifNoRoom(cause: unknown): undefined {
  if (!(cause instanceof CarpoolError) || cause.code !== 'saturated') throw cause
}

/**
 * Opens the registry in a data folder, which is made if it is missing, and cleans up what a killed server left behind.
 * @throws CarpoolError `data-unusable` if the folder is damaged, in use, or written by a newer Carpool
 */
export function openRegistry(dataDir: string, options: RegistryOptions): Registry {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const blobs = new BlobStore(join(dataDir, 'bundles'), options.diskSpace)
  const database = openDatabase(join(dataDir, 'registry.sqlite'))
  try {
    return new Registry(database, blobs, options)
  } catch (cause) {
    database.close()
    throw cause
  }
}
