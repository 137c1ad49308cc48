import { stripVTControlCharacters, styleText } from 'node:util'
import type { Writable } from 'node:stream'

export interface Column<Row> {
  readonly title: string
  readonly align?: 'left' | 'right'
  text(row: Row): string
}

/** Rows as an aligned text table with a heading; coloured if `stream` shows colours. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], stream: Writable): string {
  const cells = rows.map((row) => columns.map((column) => stripVTControlCharacters(column.text(row))))
  const widths = columns.map(({ title }, index) => Math.max(title.length, ...cells.map((line) => line[index]?.length ?? 0)))
  const toLine = (line: readonly string[]) =>
    columns
      .map(({ align }, index) =>
        align === 'right' ? line[index]?.padStart(widths[index] ?? 0) : line[index]?.padEnd(widths[index] ?? 0),
      )
      .join('  ')
      .trimEnd()
  const heading = styleText('bold', toLine(columns.map(({ title }) => title)), { stream })
  return [heading, ...cells.map(toLine)].join('\n')
}
