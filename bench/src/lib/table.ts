export interface Column<Row> {
  readonly title: string
  /** Default: right, as numbers want it. */
  readonly align?: 'left' | 'right'
  text(row: Row): string
}

export type TableStyle = 'plain' | 'markdown'

/** Rows as text: columns aligned with spaces, or a Markdown table that is also readable as it is. */
export function renderTable<Row>(columns: ReadonlyArray<Column<Row>>, rows: readonly Row[], style: TableStyle = 'plain'): string {
  const cells = rows.map((row) => columns.map((column) => cellText(column.text(row), style)))
  const titles = columns.map(({ title }) => cellText(title, style))
  const widths = titles.map((title, index) => Math.max(3, title.length, ...cells.map((line) => line[index]?.length ?? 0)))
  const padded = (line: readonly string[]): string[] =>
    line.map((text, index) => {
      const width = widths[index] ?? 0
      return isLeft(columns[index]) ? text.padEnd(width) : text.padStart(width)
    })
  const rule = widths.map((width, index) => ruleText(width, isLeft(columns[index]), style))
  return [padded(titles), rule, ...cells.map(padded)].map((line) => joinLine(line, style)).join('\n')
}

function isLeft<Row>(column: Column<Row> | undefined): boolean {
  return column?.align === 'left'
}

function cellText(text: string, style: TableStyle): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return style === 'markdown' ? line.replaceAll('|', '\\|') : line
}

function ruleText(width: number, left: boolean, style: TableStyle): string {
  return style === 'markdown' && !left ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)
}

function joinLine(cells: readonly string[], style: TableStyle): string {
  return style === 'markdown' ? `| ${cells.join(' | ')} |` : cells.join('  ').trimEnd()
}
