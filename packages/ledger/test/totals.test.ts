import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import t from 'tap'
import { GROUPS, totalsOf, written } from './fixtures/oracle.ts'
import { fileOf, open, save } from './fixtures/records.ts'

t.test('a ledger of version 1 whose process was killed before it had stored all totals catches up', async (t) => {
  const records = fc.sample(written, 300)
  // What that version had stored when it was killed: nothing, everything, or the totals of some functions and not of others.
  for (const stored of ['0', '1', 'revision % 2', 'hour % 2']) {
    const folder = t.testdir()
    const first = await open(folder)
    for (const { record, instanceUs } of records) void save(first.ledger, record, instanceUs)
    await first.ledger.close()
    const database = new DatabaseSync(fileOf(folder))
    database.exec(`DELETE FROM totals WHERE NOT (${stored}); PRAGMA user_version = 1`)
    if (stored !== '1') database.exec('UPDATE totals_through SET sequence = 0')
    database.close()
    const { ledger } = await open(folder)
    for (const by of ['function', 'owner', 'hour'] as const) {
      t.strictSame(await ledger.usage({ by }), totalsOf(GROUPS[by], records, []), `by ${by}, stored ${stored}`)
    }
    await ledger.close()
  }
})
