import type { SettingInForce } from '@carpool/server'
import type { Writable } from 'node:stream'
import { renderTable, type Column } from './table.ts'

/** Settings with where they came from, as a table. @param file path of the file with settings, if one was read */
export function renderConfig(settings: readonly SettingInForce[], file: string | undefined, stream: Writable): string {
  const columns: readonly Column<SettingInForce>[] = [
    { title: 'SETTING', text: ({ name }) => name },
    { title: 'VALUE', text: ({ value }) => (typeof value === 'object' ? value.join(', ') : String(value)) || '-' },
    { title: 'UNIT', text: ({ unit }) => unit ?? '' },
    { title: 'FROM', text: ({ source, origin }) => (source === 'file' ? (file ?? source) : (origin ?? source)) },
    { title: 'RANGE', text: ({ range }) => range },
  ]
  return renderTable(columns, settings, stream)
}
