/** docs/web-apis.md: the tables in it, between marks. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const FILE = join(import.meta.dirname, '../../docs/web-apis.md')

type Table = 'ecma-429' | 'wpt'

const patternOf = (table: Table): RegExp => new RegExp(`(<!-- ${table} -->\n)[^]*?(\n<!-- /${table} -->)`)

export function readTable(table: Table): string {
  return patternOf(table).exec(readFileSync(FILE, 'utf8'))![0].split('\n').slice(1, -1).join('\n').trim()
}

export function writeTable(table: Table, text: string): void {
  const before = readFileSync(FILE, 'utf8')
  writeFileSync(
    FILE,
    before.replace(patternOf(table), (_, open: string, close: string) => `${open}\n${text}\n${close}`),
  )
}
