import { inspect } from './inspect.ts'

const ROWS_MAX = 100
const CELL_CHARS = 80
const INDEX = '(index)'
const VALUES = 'Values'

/** Draws rows of data as `console.table` does. May throw what a getter of the data throws. */
export function formatTable(data: object, only?: readonly string[]): string {
  const rows = rowsOf(data)
  const columns = [INDEX]
  const cells = rows.map(([index, row]) => {
    const shown = new Map<string, string>([[INDEX, index]])
    if (typeof row === 'object' && row !== null) {
      for (const key of only ?? Object.keys(row)) {
        if (!columns.includes(key)) columns.push(key)
        if (Object.hasOwn(row, key)) shown.set(key, cell((row as Record<string, unknown>)[key]))
      }
    } else {
      shown.set(VALUES, cell(row))
    }
    return shown
  })
  if (cells.some((row) => row.has(VALUES)) && !columns.includes(VALUES)) columns.push(VALUES)
  const widths = columns.map((column) => Math.max(column.length, ...cells.map((row) => row.get(column)?.length ?? 0)) + 2)
  const rule = (left: string, middle: string, right: string): string =>
    left + widths.map((width) => '─'.repeat(width)).join(middle) + right
  const line = (texts: readonly string[]): string => `│${texts.map((text, at) => ` ${text}`.padEnd(widths[at]!)).join('│')}│`
  return [
    rule('┌', '┬', '┐'),
    line(columns),
    rule('├', '┼', '┤'),
    ...cells.map((row) => line(columns.map((column) => row.get(column) ?? ''))),
    rule('└', '┴', '┘'),
  ].join('\n')
}

function rowsOf(data: object): [index: string, row: unknown][] {
  const entries =
    data instanceof Map || data instanceof Set
      ? [...data.values()].map((row, at) => [`${at}`, row] as const)
      : Object.entries(data)
  return entries.slice(0, ROWS_MAX).map(([index, row]) => [index, row as unknown])
}

function cell(value: unknown): string {
  const text = inspect(value, { depth: 0 }).replaceAll('\n', ' ')
  return text.length > CELL_CHARS ? `${text.slice(0, CELL_CHARS)}…` : text
}
