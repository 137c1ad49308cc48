/** One entry for each version of the schema; entries are only ever added. `user_version` counts those that were applied. */
export const MIGRATIONS: readonly string[] = [
  `
  -- What a row's revision number stands for.
  CREATE TABLE revisions (
    key INTEGER PRIMARY KEY,
    function TEXT NOT NULL,
    revision TEXT NOT NULL,
    owner TEXT NOT NULL,
    memory_mb INTEGER NOT NULL,
    UNIQUE (function, revision, owner, memory_mb)
  ) STRICT;

  -- In the order in which they ended. Times in microseconds, unless the name says otherwise.
  CREATE TABLE invocations (
    sequence INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    revision INTEGER NOT NULL,
    started_at_ms INTEGER NOT NULL,
    trigger TEXT NOT NULL,
    start TEXT NOT NULL,
    outcome TEXT NOT NULL,
    error TEXT,
    status INTEGER NOT NULL,
    host INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    queue_us INTEGER NOT NULL,
    init_us INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    cpu_us INTEGER NOT NULL,
    init_cpu_us INTEGER NOT NULL,
    instance_us INTEGER NOT NULL,
    memory_peak_kb INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    egress_bytes_in INTEGER NOT NULL,
    egress_bytes_out INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX failures ON invocations (sequence) WHERE outcome <> 'ok';

  -- What functions used while nobody waited. The sequence is that of invocations.
  CREATE TABLE background (
    sequence INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    host INTEGER NOT NULL,
    cpu_us INTEGER NOT NULL,
    egress_bytes_in INTEGER NOT NULL,
    egress_bytes_out INTEGER NOT NULL
  ) STRICT;

  -- Hours since the beginning of 1970. First and last sequence are NULL when the rows are deleted.
  CREATE TABLE totals (
    hour INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    invocations INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    cold_starts INTEGER NOT NULL,
    cpu_us INTEGER NOT NULL,
    init_cpu_us INTEGER NOT NULL,
    background_cpu_us INTEGER NOT NULL,
    wall_us INTEGER NOT NULL,
    queue_us INTEGER NOT NULL,
    init_us INTEGER NOT NULL,
    exec_1_ms INTEGER NOT NULL,
    exec_100_ms INTEGER NOT NULL,
    init_1_ms INTEGER NOT NULL,
    instance_us INTEGER NOT NULL,
    bytes_in INTEGER NOT NULL,
    bytes_out INTEGER NOT NULL,
    egress_bytes_in INTEGER NOT NULL,
    egress_bytes_out INTEGER NOT NULL,
    memory_peak_kb INTEGER NOT NULL,
    first_sequence INTEGER,
    last_sequence INTEGER,
    PRIMARY KEY (hour, revision)
  ) STRICT, WITHOUT ROWID;

  -- The totals hold all rows up to this sequence, and none after it.
  CREATE TABLE totals_through (sequence INTEGER NOT NULL) STRICT;
  INSERT INTO totals_through VALUES (0);

  CREATE VIEW invocation_records AS
  SELECT
    sequence,
    lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-'
      || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at_ms / 1000.0, 'unixepoch') AS started_at,
    revisions.function, revisions.revision, revisions.owner, revisions.memory_mb,
    started_at_ms, trigger, start, outcome, error, status, host, attempts, queue_us, init_us, wall_us, cpu_us, init_cpu_us,
    instance_us, memory_peak_kb, bytes_in, bytes_out, egress_bytes_in, egress_bytes_out
  FROM invocations LEFT JOIN revisions ON revisions.key = invocations.revision;
  `,
]
