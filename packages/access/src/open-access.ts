import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openForWriting, unusable } from '@carpool/storage'
import { FunctionSecrets } from './function-secrets.ts'
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
  /** Called with what could not be written and may be missing. Must not throw. */
  readonly onProblem: (cause: unknown) => void
}

/** Tokens of the control plane, and secrets of functions. */
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

/** One entry for each version of the schema; entries are only ever added. `user_version` counts those that were applied. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL,
    owner TEXT NOT NULL,
    scopes TEXT NOT NULL CHECK (json_valid(scopes)),
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    last_used_at_ms INTEGER
  ) STRICT;

  -- The secrets of one function of one owner. Every change gives them a version that no secrets had before.
  CREATE TABLE secret_sets (
    owner TEXT NOT NULL,
    function TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (owner, function)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE secrets (
    owner TEXT NOT NULL,
    function TEXT NOT NULL,
    key TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (owner, function, key),
    FOREIGN KEY (owner, function) REFERENCES secret_sets (owner, function) ON DELETE CASCADE
  ) STRICT;
  CREATE TABLE last_secret_version (version INTEGER NOT NULL) STRICT;
  INSERT INTO last_secret_version VALUES (0);
  `,
]
