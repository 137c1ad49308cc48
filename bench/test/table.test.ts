import t from 'tap'
import { renderTable, type Column } from '../src/lib/table.ts'

interface Row {
  readonly name: string
  readonly count: number
}

const COLUMNS: ReadonlyArray<Column<Row>> = [
  { title: 'name', align: 'left', text: ({ name }) => name },
  { title: 'n', text: ({ count }) => String(count) },
]
const ROWS: readonly Row[] = [
  { name: 'a', count: 1 },
  { name: 'longer', count: 12345 },
]

t.test('a plain table aligns its columns, numbers to the right', async (t) => {
  t.equal(renderTable(COLUMNS, ROWS), ['name        n', '------  -----', 'a           1', 'longer  12345'].join('\n'))
})

t.test('a Markdown table says how its columns are aligned', async (t) => {
  t.equal(
    renderTable(COLUMNS, ROWS, 'markdown'),
    ['| name   |     n |', '| ------ | ----: |', '| a      |     1 |', '| longer | 12345 |'].join('\n'),
  )
})

t.test('what would break the table out of its lines is made harmless', async (t) => {
  const odd = [{ name: 'a|b\nc', count: 1 }]
  t.equal(renderTable(COLUMNS, odd).split('\n').length, 3)
  t.match(renderTable(COLUMNS, odd, 'markdown'), 'a\\|b c')
})

t.test('a table without rows is its heading', async (t) => {
  t.equal(renderTable(COLUMNS, []), ['name    n', '----  ---'].join('\n'))
})
