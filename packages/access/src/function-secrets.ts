import type { DatabaseSync } from 'node:sqlite'
import { CarpoolError, type Revision, type SecretInfo } from '@carpool/core'
import { createRedactor, type Redact } from './redactor.ts'
import { seal, SecretKey, unseal } from './secret-key.ts'
import { checkSecretKey, checkSecretValue, MAX_SECRETS } from './secret-rules.ts'
import { SecretTable, type SecretHolder, type StoredSecret } from './secret-table.ts'
import { SupersededSecrets, type SecretSet } from './superseded-secrets.ts'

export interface FunctionSecretsOptions {
  /** Path of the file that holds the key; made when the first secret is set. */
  readonly keyFile: string
  /** The time of day in ms of the epoch. */
  readonly now: () => number
}

/** A change of one secret that is not in force yet. */
export interface SecretChange {
  readonly holder: SecretHolder
  readonly key: string
  /** Undefined: it is deleted. */
  readonly value: string | undefined
  /** What the secrets of the function will be. */
  readonly next: SecretSet
}

const NONE: SecretSet = { version: 0, values: {} }

/**
 * The secrets of functions. They belong to a function and its owner, so that a name that comes to another owner brings none
 * along. On disk they are encrypted; they are decrypted when the function is first loaded, or logs.
 */
export class FunctionSecrets {
  readonly #now: () => number
  readonly #key: SecretKey
  readonly #table: SecretTable
  readonly #versions = new Map<string, number>()
  readonly #read = new Map<string, SecretSet>()
  readonly #redactors = new Map<string, Redact>()
  readonly #superseded = new SupersededSecrets()
  #lastVersion: number

  constructor(database: DatabaseSync, { keyFile, now }: FunctionSecretsOptions) {
    this.#now = now
    this.#key = new SecretKey(keyFile)
    this.#table = new SecretTable(database)
    this.#lastVersion = this.#table.lastVersion()
    for (const set of this.#table.versions()) this.#versions.set(idOf(set), set.version)
  }

  /** The functions of an owner that have secrets, or had some while they were deployed. */
  functionsOf(owner: string): string[] {
    return [...this.#versions.keys()].filter((id) => id.startsWith(`${owner}/`)).map((id) => id.slice(owner.length + 1))
  }

  /** What is in force for calls that come. @throws CarpoolError `data-unusable`, naming the function */
  current(holder: SecretHolder): SecretSet {
    const id = idOf(holder)
    const version = this.#versions.get(id)
    if (version === undefined) return NONE
    const known = this.#read.get(id)
    if (known !== undefined) return known
    const set: SecretSet = { version, values: this.#decrypt(holder) }
    this.#read.set(id, set)
    return set
  }

  /**
   * What a revision is given when it is loaded: also if that is not in force any more. After a restart no call of it is under
   * way, and it is given what is in force: a killed server may have put a change in force, and not published its revision.
   * @throws CarpoolError `data-unusable`
   */
  of(revision: SecretHolder & Pick<Revision, 'secretsVersion'>): SecretSet['values'] {
    const { secretsVersion = 0 } = revision
    const current = this.current(revision)
    if (current.version === secretsVersion) return current.values
    const superseded = this.#superseded.find(idOf(revision), secretsVersion)
    if (superseded !== undefined) return superseded.values
    if (!this.isLost(revision)) return current.values
    throw new CarpoolError(
      'data-unusable',
      `The secrets that ${revision.functionName} was deployed with are lost: access.sqlite in the data folder does not have them. ` +
        'Set them again, or restore it from a copy; or delete the function and deploy it anew without them.',
    )
  }

  /** Whether the database has been replaced, by none or an older one, since the revision was given its secrets. */
  isLost(revision: SecretHolder & Pick<Revision, 'secretsVersion'>): boolean {
    const { secretsVersion = 0 } = revision
    const id = idOf(revision)
    return (this.#versions.get(id) ?? 0) < secretsVersion && this.#superseded.find(id, secretsVersion) === undefined
  }

  /** Keys and times, by key. */
  list(holder: SecretHolder): SecretInfo[] {
    return this.#table.of(holder).map(({ key, createdAtMs, updatedAtMs }) => ({
      key,
      createdAt: new Date(createdAtMs).toISOString(),
      updatedAt: new Date(updatedAtMs).toISOString(),
    }))
  }

  /**
   * Prepares to set a secret.
   * @throws CarpoolError `bad-request`, `body-too-large` of the key, the value, or too many secrets; `data-unusable`
   */
  setting(holder: SecretHolder, key: string, value: string): SecretChange {
    checkSecretKey(key)
    checkSecretValue(value)
    const { values } = this.current(holder)
    if (!Object.hasOwn(values, key) && Object.keys(values).length >= MAX_SECRETS) {
      throw new CarpoolError('bad-request', `${holder.functionName} has ${MAX_SECRETS} secrets, which is the limit.`)
    }
    return { holder, key, value, next: { version: this.#nextVersion(), values: { ...values, [key]: value } } }
  }

  /** Prepares to delete a secret. @throws CarpoolError `secret-not-found`, `data-unusable` */
  deleting(holder: SecretHolder, key: string): SecretChange {
    const { values: given } = this.current(holder)
    if (!Object.hasOwn(given, key))
      throw new CarpoolError('secret-not-found', `${holder.functionName} has no secret ${JSON.stringify(key.slice(0, 80))}.`)
    const { [key]: _, ...values } = given
    return { holder, key, value: undefined, next: { version: this.#nextVersion(), values } }
  }

  /**
   * Puts a change in force; of two for the same function the second must be prepared after the first is in force.
   * @returns what takes it back
   */
  commit({ holder, key, value, next }: SecretChange): () => void {
    const previous = this.current(holder)
    const stored = this.#table.of(holder).find((row) => row.key === key)
    if (value === undefined) this.#store(holder, key, undefined, next)
    else {
      const nowMs = this.#now()
      const sealed = this.#guarded(holder, () => seal(this.#key.readOrMake(), value, contextOf(holder, key)))
      this.#store(holder, key, { createdAtMs: nowMs, updatedAtMs: nowMs, sealed }, next)
    }
    return () => this.#store(holder, key, stored, { version: this.#nextVersion(), values: previous.values })
  }

  #store(holder: SecretHolder, key: string, secret: Omit<StoredSecret, 'key'> | undefined, next: SecretSet): void {
    const id = idOf(holder)
    const previous = this.current(holder)
    const row = { ...holder, key, version: next.version }
    if (secret === undefined) this.#table.delete(row)
    else this.#table.put(row, secret)
    this.#superseded.add(id, previous)
    this.#redactors.delete(id)
    this.#versions.set(id, next.version)
    this.#read.set(id, next)
  }

  /** Forgets all secrets of a function. Running calls may still get them. */
  forget(holder: SecretHolder): void {
    const id = idOf(holder)
    if (!this.#versions.has(id)) return
    this.#table.deleteAll(holder)
    const read = this.#read.get(id)
    if (read !== undefined) this.#superseded.add(id, read)
    this.#redactors.delete(id)
    this.#versions.delete(id)
    this.#read.delete(id)
  }

  /** Takes the values of a function's secrets out of a text, also those that were in force lately. */
  redact(holder: SecretHolder, text: string): string {
    const id = idOf(holder)
    const known = this.#redactors.get(id)
    if (known !== undefined) return known(text)
    const superseded = this.#superseded.of(id)
    if (!this.#versions.has(id) && superseded.length === 0) return text
    const current = this.#readable(holder)
    const redact = createRedactor([...superseded, current ?? NONE].flatMap(({ values }) => Object.entries(values)))
    if (current !== undefined) this.#redactors.set(id, redact)
    return redact(text)
  }

  /** Why no secrets can be set, or those on the disk not be read, in words for an operator. Reads one of them. */
  get keyFault(): string | undefined {
    const { fault } = this.#key
    if (fault !== undefined) return fault
    for (const id of this.#versions.keys()) {
      const [owner = '', functionName = ''] = id.split('/')
      const [first] = this.#table.of({ owner, functionName })
      if (first === undefined) continue
      try {
        unseal(this.#key.read(), first.sealed, contextOf({ owner, functionName }, first.key))
        return undefined
      } catch (cause) {
        const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT'
        return `${this.#key.path} is ${isMissing ? 'missing' : 'not the one that they were encrypted with'}.`
      }
    }
    return undefined
  }

  /** What cannot be read is not given to the function either, so it cannot log it. */
  #readable(holder: SecretHolder): SecretSet | undefined {
    try {
      return this.current(holder)
    } catch {
      return undefined
    }
  }

  #decrypt(holder: SecretHolder): Record<string, string> {
    return this.#guarded(holder, () => {
      const rows = this.#table.of(holder)
      if (rows.length === 0) return {}
      const key = this.#key.read()
      return Object.fromEntries(rows.map((row) => [row.key, unseal(key, row.sealed, contextOf(holder, row.key))]))
    })
  }

  #guarded<T>({ functionName }: SecretHolder, work: () => T): T {
    try {
      return work()
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOSPC') throw cause
      throw new CarpoolError(
        'data-unusable',
        `The secrets of ${functionName} cannot be used: their key is missing, another one or none, or they were changed on the disk. ` +
          'The log of the server says more.',
        { cause },
      )
    }
  }

  /** One that no revision has, also if the database is an older one than it was, or a new one: so it goes by the time. */
  #nextVersion(): number {
    this.#lastVersion = Math.max(this.#lastVersion + 1, this.#now())
    return this.#lastVersion
  }
}

function idOf({ owner, functionName }: SecretHolder): string {
  return `${owner}/${functionName}`
}

function contextOf({ owner, functionName }: SecretHolder, key: string): string {
  return JSON.stringify([owner, functionName, key])
}
