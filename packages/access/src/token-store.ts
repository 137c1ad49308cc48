import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import {
  CarpoolError,
  MAX_TOKEN_DAYS,
  TOKEN_SCOPES,
  type CreatedToken,
  type TokenInfo,
  type TokenRequest,
  type TokenScope,
} from '@carpool/core'
import { checkOwnerName, type Principal } from './principal.ts'

export interface TokenStoreOptions {
  /** The time of day in ms of the epoch. */
  readonly now: () => number
  /**
   * Called if the last use of a token, or the end of an expired one, could not be written. The tokens can be used all the same.
   */
  readonly onProblem: (cause: unknown) => void
  /** Most tokens that there may be. Default: 10000. */
  readonly maxTokens?: number
}

const DAY_MS = 86_400_000
/** How long it can be seen of a token that it has expired. */
const KEPT_EXPIRED_MS = 30 * DAY_MS
/** How often it is written when a token was last used. */
const USED_INTERVAL_MS = 60_000
/** Compared with where there is no token of an id, so that it takes as long as where there is one. */
const NO_HASH = new Uint8Array(32)

/** The tokens of the control plane. All are in memory; what changes is on disk before it is in force. */
export class TokenStore {
  readonly #options: TokenStoreOptions
  readonly #table: TokenTable
  readonly #tokens = new Map<string, StoredToken>()
  readonly #listeners = new Set<(id: string) => void>()

  constructor(database: DatabaseSync, options: TokenStoreOptions) {
    this.#options = options
    this.#table = new TokenTable(database)
    for (const token of this.#table.all()) this.#tokens.set(token.id, token)
    this.#removeExpired(KEPT_EXPIRED_MS)
  }

  /**
   * Makes a token. What is given is the only time that it can be read.
   * @throws CarpoolError `invalid-name` of the owner; `bad-request` of scopes or days that are not valid, and of too many tokens
   */
  create({ owner, scopes, days }: TokenRequest): CreatedToken {
    checkOwnerName(owner)
    const wanted = TOKEN_SCOPES.filter((scope) => scopes.includes(scope))
    if (wanted.length === 0 || !scopes.every((scope) => TOKEN_SCOPES.includes(scope)))
      throw new CarpoolError('bad-request', `A token has one scope or more of ${TOKEN_SCOPES.join(', ')}.`)
    if (days !== undefined && !(Number.isInteger(days) && days >= 1 && days <= MAX_TOKEN_DAYS))
      throw new CarpoolError('bad-request', `A token expires after 1 to ${MAX_TOKEN_DAYS} days, not ${days}.`)
    const { now, maxTokens = 10_000 } = this.#options
    this.#removeExpired(this.#tokens.size >= maxTokens ? 0 : KEPT_EXPIRED_MS)
    if (this.#tokens.size >= maxTokens)
      throw new CarpoolError('bad-request', `There are ${maxTokens} tokens, which is the limit; revoke some.`)
    const { id, token } = generateToken()
    const createdAtMs = now()
    const stored: StoredToken = {
      id,
      hash: hashToken(token),
      owner,
      scopes: wanted,
      createdAtMs,
      expiresAtMs: days === undefined ? undefined : createdAtMs + days * DAY_MS,
      lastUsedAtMs: undefined,
    }
    this.#table.insert(stored)
    this.#tokens.set(id, stored)
    return { ...infoOf(stored), token }
  }

  /** All tokens, the oldest first; those that have expired are among them for 30 days, unless there are too many tokens. */
  list(): TokenInfo[] {
    return [...this.#tokens.values()].map(infoOf)
  }

  find(id: string): TokenInfo | undefined {
    const token = this.#tokens.get(id)
    return token === undefined ? undefined : infoOf(token)
  }

  /** Makes a token worthless at once. @throws CarpoolError `token-not-found` */
  revoke(id: string): void {
    if (!this.#tokens.has(id)) throw new CarpoolError('token-not-found', 'There is no token of this id.')
    this.#table.remove(id)
    this.#tokens.delete(id)
    for (const listener of this.#listeners) listener(id)
  }

  /** Calls the listener, which must not throw, with the id of each token that is revoked. Returns what stops it. */
  onRevoke(listener: (id: string) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Whether the token of this id is there and has not expired. */
  isValid(id: string): boolean {
    const token = this.#tokens.get(id)
    return token !== undefined && !this.#isExpired(token)
  }

  /** The bearer of a token. Takes the same time whether the id or the secret is wrong. @throws CarpoolError `unauthorized` */
  authenticate(text: string): Principal {
    const token = this.#tokens.get(tokenIdOf(text) ?? '')
    const isRight = timingSafeEqual(hashToken(text), token?.hash ?? NO_HASH)
    if (token === undefined || !isRight)
      throw new CarpoolError('unauthorized', 'The token is not valid: it may have been revoked.')
    if (this.#isExpired(token)) throw new CarpoolError('unauthorized', 'The token has expired.')
    this.#use(token)
    return { tokenId: token.id, owner: token.owner, scopes: new Set(token.scopes) }
  }

  /** Those that expired so long ago or longer. */
  #removeExpired(keptMs: number): void {
    const nowMs = this.#options.now()
    const old = [...this.#tokens.values()].filter(({ expiresAtMs = Infinity }) => nowMs - expiresAtMs >= keptMs)
    try {
      for (const { id } of old) {
        this.#table.remove(id)
        this.#tokens.delete(id)
      }
    } catch (cause) {
      this.#options.onProblem(cause)
    }
  }

  #isExpired({ expiresAtMs }: StoredToken): boolean {
    return expiresAtMs !== undefined && this.#options.now() >= expiresAtMs
  }

  #use(token: StoredToken): void {
    const nowMs = this.#options.now()
    const { lastUsedAtMs } = token
    // A clock that was set back counts as well.
    if (lastUsedAtMs !== undefined && Math.abs(nowMs - lastUsedAtMs) < USED_INTERVAL_MS) return
    // Also if it cannot be written: then the next attempt is a minute later.
    this.#tokens.set(token.id, { ...token, lastUsedAtMs: nowMs })
    try {
      this.#table.used(token.id, nowMs)
    } catch (cause) {
      this.#options.onProblem(cause)
    }
  }
}

function infoOf({ id, owner, scopes, createdAtMs, expiresAtMs, lastUsedAtMs }: StoredToken): TokenInfo {
  return {
    id,
    owner,
    scopes,
    createdAt: isoTime(createdAtMs),
    ...(expiresAtMs !== undefined && { expiresAt: isoTime(expiresAtMs) }),
    ...(lastUsedAtMs !== undefined && { lastUsedAt: isoTime(lastUsedAtMs) }),
  }
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

/** A token as it is kept. Times in ms of the epoch. */
interface StoredToken {
  readonly id: string
  readonly hash: Uint8Array
  readonly owner: string
  readonly scopes: readonly TokenScope[]
  readonly createdAtMs: number
  readonly expiresAtMs: number | undefined
  readonly lastUsedAtMs: number | undefined
}

/** The records of tokens. */
class TokenTable {
  readonly #database: DatabaseSync

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  all(): StoredToken[] {
    return this.#database.prepare('SELECT * FROM tokens ORDER BY created_at_ms, id').all().map(storedToken)
  }

  insert({ id, hash, owner, scopes, createdAtMs, expiresAtMs }: StoredToken): void {
    this.#database
      .prepare('INSERT INTO tokens (id, hash, owner, scopes, created_at_ms, expires_at_ms) VALUES (?, ?, ?, ?, ?, ?)')
      .run(id, hash, owner, JSON.stringify(scopes), createdAtMs, expiresAtMs ?? null)
  }

  remove(id: string): void {
    this.#database.prepare('DELETE FROM tokens WHERE id = ?').run(id)
  }

  used(id: string, atMs: number): void {
    this.#database.prepare('UPDATE tokens SET last_used_at_ms = ? WHERE id = ?').run(atMs, id)
  }
}

/** @throws CarpoolError `data-unusable` if it cannot be what was written, so that nobody is let in or shut out by chance */
function storedToken(row: Record<string, SQLOutputValue>): StoredToken {
  const optional = (name: string): number | undefined => (row[name] === null ? undefined : Number(row[name]))
  const id = String(row['id'])
  const owner = String(row['owner'])
  const hash = row['hash']
  const scopes: unknown = JSON.parse(String(row['scopes']))
  if (
    !isTokenId(id) ||
    !(hash instanceof Uint8Array) ||
    hash.length !== NO_HASH.length ||
    !Array.isArray(scopes) ||
    owner === ''
  ) {
    throw new CarpoolError(
      'data-unusable',
      'A token in the access database, access.sqlite in the data folder, is damaged: ' +
        `its id is ${JSON.stringify(id.slice(0, 40))}. Restore the file from a copy, or delete the row.`,
    )
  }
  return {
    id,
    hash,
    owner,
    // A scope of another version of Carpool allows nothing here.
    scopes: TOKEN_SCOPES.filter((scope) => scopes.includes(scope)),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: optional('expires_at_ms'),
    lastUsedAtMs: optional('last_used_at_ms'),
  }
}

/** 256 bits cannot be guessed, so the hash at rest needs neither salt nor many rounds. */
const SECRET_BYTES = 32
const ID_BYTES = 8
const TOKEN = /^cpt_([0-9a-f]{16})_[\w-]{43}$/
const TOKEN_BEGINNING = /cpt_[0-9a-f]{16}_/i
const TOKEN_ID = /^[0-9a-f]{16}$/

/** Makes a token of the form `cpt_<id>_<secret>`. The id is no secret; the rest is never kept. */
function generateToken(): { readonly id: string; readonly token: string } {
  const id = randomBytes(ID_BYTES).toString('hex')
  return { id, token: `cpt_${id}_${randomBytes(SECRET_BYTES).toString('base64url')}` }
}

/** The id in a token; undefined if the text has not the form of one. */
function tokenIdOf(text: string): string | undefined {
  return TOKEN.exec(text)?.[1]
}

/** Whether a text contains a token, or the beginning of one. */
export function holdsToken(text: string): boolean {
  return TOKEN_BEGINNING.test(text)
}

export function isTokenId(text: string): boolean {
  return TOKEN_ID.test(text)
}

/** What is kept of a token: SHA-256. */
function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
