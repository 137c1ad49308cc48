import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openForWriting, unusable } from '@carpool/storage'
import { FunctionSecrets } from './function-secrets.ts'
import { MIGRATIONS } from './schema.ts'
import { TokenStore } from './token-store.ts'

const STORE = {
  name: 'access database',
  file: 'access.sqlite',
  damaged:
    'The access database, access.sqlite in the data folder, is damaged: it holds tokens and secrets. Restore it from a copy, or move it ' +
    'away and start again to make new ones.',
}
const SECRET_KEY_FILE = 'secret-key'

export interface AccessOptions {
  /** Path of the file with the key of the secrets. Default: `secret-key` in the data folder. */
  readonly secretKeyFile?: string
  /** The time of day in ms of the epoch. Default: `Date.now`. */
  readonly now?: () => number
  /** Told of what could not be written and hinders nobody. Must not throw. */
  readonly onProblem: (cause: unknown) => void
}

/** Who may use the control plane, and what functions are given that nobody may see. */
export interface AccessStore {
  readonly tokens: TokenStore
  readonly secrets: FunctionSecrets
  close(): void
}

/**
 * Opens the access database of a data folder, or begins one.
 * @throws CarpoolError `data-unusable` if it is damaged, in use, or written by a newer Carpool
 */
export function openAccess(dataDir: string, { secretKeyFile, now = Date.now, onProblem }: AccessOptions): AccessStore {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    const database = openForWriting(join(dataDir, STORE.file), {
      store: STORE,
      migrations: MIGRATIONS,
      busyTimeoutMs: 0,
      synchronous: 'FULL',
      isExclusive: true,
    })
    try {
      return {
        tokens: new TokenStore(database, { now, onProblem }),
        secrets: new FunctionSecrets(database, { now, keyFile: secretKeyFile ?? join(dataDir, SECRET_KEY_FILE) }),
        close: () => database.close(),
      }
    } catch (cause) {
      database.close()
      throw cause
    }
  } catch (cause) {
    throw unusable(STORE, cause)
  }
}
