import type { DatabaseSync } from 'node:sqlite'
import { CarpoolError } from '@carpool/core'
import { openForWriting, resultCode } from '@carpool/storage'

const STORE = {
  name: 'registry',
  file: 'registry.sqlite',
  damaged: 'The registry database in the data folder is damaged; restore it from a copy.',
}

/**
 * Opens the database and locks it for this process: routes live in memory, so a second server on the same folder would answer
 * with old code and delete new bundles.
 * @throws CarpoolError `data-unusable` if it is damaged, in use by another server, or written by a newer Carpool
 */
export function openDatabase(path: string): DatabaseSync {
  try {
    return openForWriting(path, {
      store: STORE,
      migrations: MIGRATIONS,
      busyTimeoutMs: 0,
      synchronous: 'FULL',
      isExclusive: true,
    })
  } catch (cause) {
    throw explain(cause)
  }
}

function explain(cause: unknown): unknown {
  switch (resultCode(cause)) {
    case 'busy':
      return new CarpoolError('data-unusable', 'The data folder is in use by another Carpool server.', { cause })
    case 'corrupt':
    case 'not-a-database':
      return new CarpoolError('data-unusable', STORE.damaged, { cause })
    default:
      return cause
  }
}

/** One entry for each version of the schema; entries are only ever added. `user_version` counts those that were applied. */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE functions (
    name TEXT PRIMARY KEY,
    live_id TEXT NOT NULL,
    FOREIGN KEY (name, live_id) REFERENCES revisions (function_name, id) DEFERRABLE INITIALLY DEFERRED
  ) STRICT;

  CREATE TABLE revisions (
    function_name TEXT NOT NULL REFERENCES functions (name) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    form TEXT NOT NULL,
    created_at TEXT NOT NULL,
    code_hash TEXT NOT NULL,
    code_bytes INTEGER NOT NULL,
    source_map_hash TEXT NOT NULL,
    config TEXT NOT NULL CHECK (json_valid(config)),
    PRIMARY KEY (function_name, id)
  ) STRICT;
  CREATE INDEX revisions_by_code ON revisions (code_hash);
  CREATE INDEX revisions_by_source_map ON revisions (source_map_hash);

  CREATE TABLE code_caches (
    code_hash TEXT NOT NULL,
    version_key TEXT NOT NULL,
    cache_hash TEXT NOT NULL,
    PRIMARY KEY (code_hash, version_key)
  ) STRICT;
  CREATE INDEX code_caches_by_hash ON code_caches (cache_hash);
  `,
  `
  -- Kept when the function is deleted: to deploy it again does not enable it. Another owner's function of that name is another one.
  CREATE TABLE disabled (
    function_name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TEXT NOT NULL
  ) STRICT;
  `,
  `
  -- Of a revision, because the code has run before a cache is made: whoever else has the same code does not get it. Those that were
  -- made before it ran are dropped, and made anew.
  DROP TABLE code_caches;
  CREATE TABLE code_caches (
    function_name TEXT NOT NULL,
    revision_id TEXT NOT NULL,
    version_key TEXT NOT NULL,
    cache_hash TEXT NOT NULL,
    PRIMARY KEY (function_name, revision_id),
    FOREIGN KEY (function_name, revision_id) REFERENCES revisions (function_name, id) ON DELETE CASCADE
  ) STRICT;
  CREATE INDEX code_caches_by_hash ON code_caches (cache_hash);
  `,
]
