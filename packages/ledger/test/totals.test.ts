import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { GROUPS, totalsOf, written } from './fixtures/oracle.ts'
import { fileOf, open, save } from './fixtures/records.ts'

const TO_VERSION_1 = [
  'DROP VIEW invocation_records',
  ...['open_us', 'sockets', 'socket_us'].flatMap((name) =>
    ['invocations', 'totals', ...(name === 'open_us' ? [] : ['background'])].map(
      (table) => `ALTER TABLE ${table} DROP COLUMN ${name}`,
    ),
  ),
  'CREATE VIEW invocation_records AS SELECT * FROM invocations',
  'PRAGMA user_version = 1',
].join(';')

t.test('a ledger of version 1 whose process was killed before it had stored all totals catches up', async (t) => {
  // There were no streams and no sockets then.
  const records = fc.sample(written, 300).map(({ record, instanceUs }) => ({
    record: { ...record, openUs: 0, sockets: 0, socketUs: 0 },
    instanceUs,
  }))
  // What that version had stored when it was killed: nothing, everything, or the totals of some functions and not of others.
  for (const stored of ['0', '1', 'revision % 2', 'hour % 2']) {
    const folder = t.testdir()
    const first = await open(folder)
    for (const { record, instanceUs } of records) void save(first.ledger, record, instanceUs)
    await first.ledger.close()
    const database = new DatabaseSync(fileOf(folder))
    database.exec(`DELETE FROM totals WHERE NOT (${stored}); ${TO_VERSION_1}`)
    if (stored !== '1') database.exec('UPDATE totals_through SET sequence = 0')
    database.close()
    const { ledger } = await open(folder)
    for (const by of ['function', 'owner', 'hour'] as const) {
      t.strictSame(await ledger.usage({ by }), totalsOf(GROUPS[by], records, []), `by ${by}, stored ${stored}`)
    }
    await ledger.close()
  }
})
