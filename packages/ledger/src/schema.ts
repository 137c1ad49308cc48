/**
 * Version 1 stored totals a moment after their rows. Here they catch up with what a process that was killed in between left out;
 * from then on they are stored with their rows. Each sum with what a row of `invocations` adds to it, unless it was refused.
 */
const CATCH_UP_SUMS: ReadonlyArray<readonly [name: string, ofInvocation: string, ofBackground?: string]> = [
  ['invocations', "outcome <> 'refused'"],
  ['failures', "outcome NOT IN ('ok', 'refused')"],
  ['refused', "outcome = 'refused'"],
  ['cold_starts', "outcome <> 'refused' AND start <> 'warm'"],
  ['cpu_us', 'cpu_us'],
  ['init_cpu_us', 'init_cpu_us'],
  ['background_cpu_us', '0', 'cpu_us'],
  ['wall_us', 'wall_us'],
  ['queue_us', 'queue_us'],
  ['init_us', 'init_us'],
  ['exec_1_ms', '(max(0, wall_us - queue_us - init_us) + 999) / 1000'],
  ['exec_100_ms', '(max(0, wall_us - queue_us - init_us) + 99999) / 100000 * 100'],
  ['init_1_ms', '(init_us + 999) / 1000'],
  ['instance_us', 'instance_us'],
  ['bytes_in', 'bytes_in'],
  ['bytes_out', 'bytes_out'],
  ['egress_bytes_in', 'egress_bytes_in', 'egress_bytes_in'],
  ['egress_bytes_out', 'egress_bytes_out', 'egress_bytes_out'],
]
const COUNTED_IF_REFUSED = ['refused', 'bytes_in']
const CATCH_UP = `
  INSERT INTO totals
  SELECT
    tail.hour, tail.revision,
    ${CATCH_UP_SUMS.map(([name]) => `CAST(min(total(tail.${name}), 9007199254740991) AS INTEGER)`).join(', ')},
    max(tail.memory_peak_kb), min(tail.sequence), max(tail.sequence)
  FROM (
    SELECT
      started_at_ms / 3600000 AS hour, revision, sequence,
      ${CATCH_UP_SUMS.map(([name, of]) => `(${COUNTED_IF_REFUSED.includes(name) ? 1 : "outcome <> 'refused'"}) * (${of}) AS ${name}`).join(', ')},
      (outcome <> 'refused') * memory_peak_kb AS memory_peak_kb
    FROM invocations WHERE sequence > (SELECT sequence FROM totals_through)
    UNION ALL
    SELECT at_ms / 3600000, revision, sequence, ${CATCH_UP_SUMS.map(([, , ofBackground = '0']) => ofBackground).join(', ')}, 0
    FROM background WHERE sequence > (SELECT sequence FROM totals_through)
  ) AS tail
  LEFT JOIN totals AS held ON held.hour = tail.hour AND held.revision = tail.revision
  WHERE tail.sequence > coalesce(held.last_sequence, 0)
  GROUP BY tail.hour, tail.revision
  ON CONFLICT (hour, revision) DO UPDATE SET
    ${CATCH_UP_SUMS.map(([name]) => `${name} = min(${name} + excluded.${name}, 9007199254740991)`).join(', ')},
    memory_peak_kb = max(memory_peak_kb, excluded.memory_peak_kb),
    first_sequence = coalesce(min(first_sequence, excluded.first_sequence), excluded.first_sequence),
    last_sequence = coalesce(max(last_sequence, excluded.last_sequence), excluded.last_sequence);
  UPDATE totals_through SET sequence = max(
    sequence, coalesce((SELECT max(sequence) FROM invocations), 0), coalesce((SELECT max(sequence) FROM background), 0)
  );
`

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
  CATCH_UP,
  `
  ALTER TABLE invocations ADD COLUMN open_us INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE invocations ADD COLUMN sockets INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE invocations ADD COLUMN socket_us INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE background ADD COLUMN sockets INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE background ADD COLUMN socket_us INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE totals ADD COLUMN open_us INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE totals ADD COLUMN sockets INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE totals ADD COLUMN socket_us INTEGER NOT NULL DEFAULT 0;
  DROP VIEW invocation_records;
  CREATE VIEW invocation_records AS
  SELECT
    sequence,
    lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-'
      || substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at_ms / 1000.0, 'unixepoch') AS started_at,
    revisions.function, revisions.revision, revisions.owner, revisions.memory_mb,
    started_at_ms, trigger, start, outcome, error, status, host, attempts, queue_us, init_us, wall_us, cpu_us, init_cpu_us,
    instance_us, memory_peak_kb, bytes_in, bytes_out, egress_bytes_in, egress_bytes_out, open_us, sockets, socket_us
  FROM invocations LEFT JOIN revisions ON revisions.key = invocations.revision;
  `,
]
