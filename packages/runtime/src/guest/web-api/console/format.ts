import {
  arrayJoin,
  hasOwn,
  isArray,
  isInstance,
  jsonStringify,
  type List,
  mapForEach,
  max,
  min,
  objectKeys,
  PlainMap,
  PlainSet,
  SafeList,
  SafeMap,
  SafeNumber,
  setForEach,
  stringCharCodeAt,
  stringPadEnd,
  stringRepeat,
  stringReplaceAll,
  stringSlice,
  trunc,
} from '../../language/primordials.ts'
import { toText } from '../../language/values.ts'
import { inspect } from './inspect.ts'

const PERCENT = 0x25

/** Joins the arguments of a console call as `util.format` does: `%s %d %i %f %j %o %O %c %%` in the first take the next ones. */
export function format(args: List<unknown>): string {
  const first = args.length === 0 ? '' : args[0]
  if (typeof first !== 'string') return joinRest('', args, 0)
  if (args.length === 1) return first
  let text = ''
  let next = 1
  let copied = 0
  for (let index = 0; index < first.length - 1; index++) {
    if (stringCharCodeAt(first, index) !== PERCENT) continue
    const letter = first[index + 1]!
    if (letter !== '%' && next >= args.length) continue
    const shown = letter === '%' ? '%' : formatOne(letter, args[next])
    if (shown === undefined) continue
    text += stringSlice(first, copied, index) + shown
    copied = index + 2
    index++
    if (letter !== '%') next++
  }
  return joinRest(text + stringSlice(first, copied), args, next)
}

function joinRest(start: string, args: List<unknown>, from: number): string {
  let text = start
  for (let index = from; index < args.length; index++) {
    const value = args[index]
    text += (index === 0 ? '' : ' ') + (typeof value === 'string' ? value : inspect(value))
  }
  return text
}

/** @returns undefined if the letter is no specifier */
function formatOne(letter: string, value: unknown): string | undefined {
  switch (letter) {
    case 's':
      return typeof value === 'string' ? value : inspect(value, { depth: 0 })
    case 'd':
      return typeof value === 'bigint' ? `${value}n` : `${toNumber(value)}`
    case 'i':
      return typeof value === 'bigint' ? `${value}n` : `${trunc(toNumber(value))}`
    case 'f':
      return `${toNumber(value)}`
    case 'j':
      return toJson(value)
    case 'o':
      return inspect(value, { depth: 4 })
    case 'O':
      return inspect(value)
    case 'c':
      return ''
    default:
      return undefined
  }
}

function toNumber(value: unknown): number {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? SafeNumber(value) : NaN
}

function toJson(value: unknown): string {
  try {
    return toText(jsonStringify(value))
  } catch {
    return '[Circular]'
  }
}

const ROWS_MAX = 100
const CELL_CHARS = 80
const INDEX = '(index)'
const VALUES = 'Values'

/** The cells of one row by the name of their column. */
type Row = SafeMap<string, string>

/** Draws rows of data as `console.table` does. May throw what a getter of the data throws. */
export function formatTable(data: object, only?: readonly string[]): string {
  const columns = new SafeList<string>()
  columns[0] = INDEX
  const rows = rowsOf(data, only, columns)
  const widths = new SafeList<number>()
  for (let at = 0; at < columns.length; at++) widths[at] = widthOf(columns[at]!, rows) + 2
  const header = new SafeMap<string, string>()
  for (let at = 0; at < columns.length; at++) header.set(columns[at]!, columns[at]!)
  let text = `${rule('┌', '┬', '┐', widths)}\n${line(header, columns, widths)}\n${rule('├', '┼', '┤', widths)}\n`
  for (let at = 0; at < rows.length; at++) text += `${line(rows[at]!, columns, widths)}\n`
  return text + rule('└', '┴', '┘', widths)
}

/** Shows the rows, and adds the columns that they have. */
function rowsOf(data: object, only: readonly string[] | undefined, columns: List<string>): List<Row> {
  const rows = new SafeList<Row>()
  let hasValues = false
  const add = (index: string, value: unknown): void => {
    const row: Row = new SafeMap()
    row.set(INDEX, index)
    rows[rows.length] = row
    if (typeof value === 'object' && value !== null) {
      addFields(value, only, row, columns)
    } else {
      row.set(VALUES, cell(value))
      hasValues = true
    }
  }
  if (isInstance(PlainMap, data) || isInstance(PlainSet, data)) {
    let count = 0
    const visit = (value: unknown): void => {
      if (count < ROWS_MAX) add(`${count}`, value)
      count++
    }
    if (isInstance(PlainMap, data)) mapForEach(data, visit)
    else setForEach(data, visit)
  } else {
    const names = objectKeys(data)
    for (let at = 0; at < min(names.length, ROWS_MAX); at++) add(names[at]!, (data as Record<string, unknown>)[names[at]!])
  }
  if (hasValues) addColumn(columns, VALUES)
  return rows
}

function addFields(value: object, only: readonly string[] | undefined, row: Row, columns: List<string>): void {
  const keys = isArray(only) ? only : objectKeys(value)
  for (let at = 0; at < keys.length; at++) {
    const key = toText(keys[at])
    addColumn(columns, key)
    if (hasOwn(value, key)) row.set(key, cell((value as Record<string, unknown>)[key]))
  }
}

function addColumn(columns: List<string>, name: string): void {
  for (let at = 0; at < columns.length; at++) {
    if (columns[at] === name) return
  }
  columns[columns.length] = name
}

function widthOf(column: string, rows: List<Row>): number {
  let width = column.length
  for (let at = 0; at < rows.length; at++) {
    const row: Row = rows[at]!
    width = max(width, (row.get(column) ?? '').length)
  }
  return width
}

function rule(left: string, middle: string, right: string, widths: List<number>): string {
  const parts = new SafeList<string>()
  for (let at = 0; at < widths.length; at++) parts[at] = stringRepeat('─', widths[at]!)
  return left + arrayJoin(parts, middle) + right
}

function line(row: Row, columns: List<string>, widths: List<number>): string {
  const parts = new SafeList<string>()
  for (let at = 0; at < columns.length; at++) parts[at] = stringPadEnd(` ${row.get(columns[at]!) ?? ''}`, widths[at]!)
  return `│${arrayJoin(parts, '│')}│`
}

function cell(value: unknown): string {
  const text = stringReplaceAll(inspect(value, { depth: 0 }), '\n', ' ')
  return text.length > CELL_CHARS ? `${stringSlice(text, 0, CELL_CHARS)}…` : text
}
