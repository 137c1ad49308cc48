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
