/** One entry for each version of the schema; entries are only ever added. `user_version` counts those that were applied. */
export const MIGRATIONS: readonly string[] = [
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
]
