import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { resolveLimits, type HandlerForm, type Revision, type RevisionConfig } from '@carpool/core'
import { transact } from '@carpool/storage'
import type { BlobKind, BlobName } from './blob-store.ts'

export interface StoredRevision {
  readonly revision: Revision
  readonly sourceMapHash: string
}

/** The registry's records: every kept revision, which one is live, and the code caches of those. */
export class RevisionTable {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** The live revision of each function, by name. */
  live(): StoredRevision[] {
    const statement = this.#database.prepare(
      `SELECT r.* FROM functions f JOIN revisions r ON r.function_name = f.name AND r.id = f.live_id ORDER BY f.name`,
    )
    return statement.all().map(storedRevision)
  }

  /** The kept revisions of a function, the last published first. */
  history(functionName: string): StoredRevision[] {
    const statement = this.#database.prepare('SELECT * FROM revisions WHERE function_name = ? ORDER BY sequence DESC')
    return statement.all(functionName).map(storedRevision)
  }

  sourceMapHash(functionName: string, id: string): string | undefined {
    const statement = this.#database.prepare('SELECT source_map_hash AS hash FROM revisions WHERE function_name = ? AND id = ?')
    return statement.get(functionName, id)?.['hash'] as string | undefined
  }

  codeCacheHash(functionName: string, id: string): string | undefined {
    const statement = this.#database.prepare(
      'SELECT cache_hash AS hash FROM code_caches WHERE function_name = ? AND revision_id = ?',
    )
    return statement.get(functionName, id)?.['hash'] as string | undefined
  }

  /** Gives a revision that is kept its code cache. Returns the blobs that lost a reference. */
  setCodeCache({ functionName, id }: Pick<Revision, 'functionName' | 'id'>, { versionKey, hash }: CodeCacheRow): BlobName[] {
    const replaced = this.codeCacheHash(functionName, id)
    this.#database
      .prepare('INSERT OR REPLACE INTO code_caches (function_name, revision_id, version_key, cache_hash) VALUES (?, ?, ?, ?)')
      .run(functionName, id, versionKey, hash)
    return replaced === undefined ? [] : [{ kind: 'cache', hash: replaced }]
  }

  /**
   * Makes a revision live, and forgets those of its function beyond `historyLimit`, and the code caches of all but the live one.
   * Returns the blobs that lost a reference.
   */
  publish({ revision, sourceMapHash }: StoredRevision, codeCache: CodeCacheRow | undefined, historyLimit: number): BlobName[] {
    return transact(this.#database, () => {
      const replaced = this.#blobsOf(revision.functionName, revision.id)
      this.#upsert(revision, sourceMapHash)
      this.#database
        .prepare(
          'INSERT INTO functions (name, live_id) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET live_id = excluded.live_id',
        )
        .run(revision.functionName, revision.id)
      const caches = this.#dropCodeCachesBut(revision)
      if (codeCache !== undefined) caches.push(...this.setCodeCache(revision, codeCache))
      // The live revision has the highest sequence, so it is never among these.
      const forgotten = this.#database
        .prepare('SELECT id FROM revisions WHERE function_name = ? ORDER BY sequence DESC LIMIT -1 OFFSET ?')
        .all(revision.functionName, historyLimit)
        .flatMap(({ id }) => this.#forget(revision.functionName, id as string))
      return [...replaced, ...caches, ...forgotten]
    })
  }

  /** Forgets a function with its history. Returns the blobs that lost a reference; undefined if there is no such function. */
  remove(functionName: string): BlobName[] | undefined {
    return transact(this.#database, () => {
      const ids = this.#database.prepare('SELECT id FROM revisions WHERE function_name = ?').all(functionName)
      const blobs = ids.flatMap(({ id }) => this.#blobsOf(functionName, id as string))
      const { changes } = this.#database.prepare('DELETE FROM functions WHERE name = ?').run(functionName)
      return changes === 0 ? undefined : blobs
    })
  }

  /** Drops the code caches that another version of the engine wrote. */
  dropCodeCachesExcept(versionKey: string): void {
    this.#database.prepare('DELETE FROM code_caches WHERE version_key <> ?').run(versionKey)
  }

  isReferenced({ kind, hash }: BlobName): boolean {
    return this.#database.prepare(REFERENCE_QUERIES[kind]).get(hash) !== undefined
  }

  #upsert(revision: Revision, sourceMapHash: string): void {
    const { functionName, id, owner, form, createdAt, codeHash, codeBytes, handlerExport, limits, env, secretsVersion, egress } =
      revision
    const config: RevisionConfig = {
      limits,
      env,
      ...(handlerExport !== undefined && { handlerExport }),
      ...(secretsVersion !== undefined && { secretsVersion }),
      ...(egress !== undefined && { egress }),
    }
    this.#database
      .prepare(
        `INSERT INTO revisions (function_name, id, sequence, owner, form, created_at, code_hash, code_bytes, source_map_hash, config)
         VALUES (?, ?, (SELECT coalesce(max(sequence), 0) + 1 FROM revisions), ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (function_name, id) DO UPDATE SET
           sequence = excluded.sequence, owner = excluded.owner, form = excluded.form, created_at = excluded.created_at,
           source_map_hash = excluded.source_map_hash`,
      )
      .run(functionName, id, owner, form, createdAt, codeHash, codeBytes, sourceMapHash, JSON.stringify(config))
  }

  #forget(functionName: string, id: string): BlobName[] {
    const blobs = this.#blobsOf(functionName, id)
    this.#database.prepare('DELETE FROM revisions WHERE function_name = ? AND id = ?').run(functionName, id)
    return blobs
  }

  #blobsOf(functionName: string, id: string): BlobName[] {
    const row = this.#database
      .prepare('SELECT code_hash, source_map_hash FROM revisions WHERE function_name = ? AND id = ?')
      .get(functionName, id)
    if (row === undefined) return []
    const cacheHash = this.codeCacheHash(functionName, id)
    return [
      { kind: 'js', hash: row['code_hash'] as string },
      { kind: 'map', hash: row['source_map_hash'] as string },
      ...(cacheHash === undefined ? [] : [{ kind: 'cache', hash: cacheHash } as const]),
    ]
  }

  #dropCodeCachesBut({ functionName, id }: Revision): BlobName[] {
    return this.#database
      .prepare('DELETE FROM code_caches WHERE function_name = ? AND revision_id <> ? RETURNING cache_hash AS hash')
      .all(functionName, id)
      .map(({ hash }) => ({ kind: 'cache', hash: hash as string }))
  }
}

export interface CodeCacheRow {
  /** What the cache depends on besides the code: the version of the engine and the processor. */
  readonly versionKey: string
  readonly hash: string
}

const REFERENCE_QUERIES: Record<BlobKind, string> = {
  js: 'SELECT 1 FROM revisions WHERE code_hash = ? LIMIT 1',
  map: 'SELECT 1 FROM revisions WHERE source_map_hash = ? LIMIT 1',
  cache: 'SELECT 1 FROM code_caches WHERE cache_hash = ? LIMIT 1',
}

function storedRevision(row: Record<string, SQLOutputValue>): StoredRevision {
  const stored = JSON.parse(row['config'] as string) as RevisionConfig
  // A revision from before a limit existed has the limit's default.
  const config = { ...stored, limits: resolveLimits(stored.limits) }
  const revision: Revision = Object.freeze({
    ...config,
    id: row['id'] as string,
    functionName: row['function_name'] as string,
    owner: row['owner'] as string,
    form: row['form'] as HandlerForm,
    createdAt: row['created_at'] as string,
    codeBytes: row['code_bytes'] as number,
    codeHash: row['code_hash'] as string,
  })
  return { revision, sourceMapHash: row['source_map_hash'] as string }
}
