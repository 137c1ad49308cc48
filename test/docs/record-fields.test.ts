/** Every column of a record is explained, and nothing else. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openForWriting } from '../../packages/ledger/src/database.ts'
import { ROOT } from '../support/command.ts'
import { temporaryFolder } from '../support/server.ts'

t.test('the table of the docs and the view of the ledger have the same columns', async (t) => {
  const text = readFileSync(join(ROOT, 'packages/ledger/README.md'), 'utf8')
  const explained = [...text.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  )
  const { database } = openForWriting(join(temporaryFolder(t), 'ledger.sqlite'))
  t.teardown(() => database.close())
  const columns = database.prepare("SELECT name FROM pragma_table_info('invocation_records')").all()
  t.strictSame(new Set(explained), new Set(columns.map(({ name }) => name)))
})
