/** Every column of a record is explained, and nothing else. */
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import t from 'tap'
import { ROOT } from '../support/command.ts'
import { startServer } from '../support/server.ts'

t.test('the table of the docs and the view of the ledger have the same columns', async (t) => {
  const text = readFileSync(join(ROOT, 'packages/ledger/README.md'), 'utf8')
  const explained = [...text.matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name),
  )
  const server = await startServer(t)
  const database = new DatabaseSync(join(server.dataDir, 'ledger.sqlite'), { readOnly: true })
  t.teardown(() => database.close())
  const columns = database.prepare("SELECT name FROM pragma_table_info('invocation_records')").all()
  t.strictSame(new Set(explained), new Set(columns.map(({ name }) => name)))
})
