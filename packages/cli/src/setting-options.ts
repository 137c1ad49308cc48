import {
  flagOf,
  type Setting,
  SETTING_TOPICS,
  type SettingInForce,
  type SettingName,
  SETTINGS,
  type SettingSource,
  variableOf,
} from '@carpool/server'
import { type Command, Option } from 'commander'
import type { Writable } from 'node:stream'
import { type Column, renderTable } from './format.ts'
import { texts } from './options.ts'

/** One option for each setting of the server, by topic. @param without settings that the command has an option of its own for */
export function addSettingOptions(command: Command, without: readonly SettingName[] = []): void {
  for (const { title, settings } of SETTING_TOPICS) {
    command.optionsGroup(`${title}:`)
    for (const [name, setting] of Object.entries(settings)) {
      if (!(without as readonly string[]).includes(name)) command.addOption(optionOf(name, setting))
    }
  }
  command.optionsGroup('Options:')
}

/** What was given on the command line, by setting. */
export function settingFlags(options: Readonly<Record<string, unknown>>): SettingSource {
  // An option has the name of its setting: both are in camel case.
  return Object.fromEntries(Object.keys(SETTINGS).map((name) => [name, options[name] as SettingSource[string]]))
}

function optionOf(name: string, setting: Setting): Option {
  const placeholder = { number: 'number', text: 'text', list: 'text' }[setting.type]
  const fallback = setting.default.toString()
  const notes = [...(fallback === '' ? [] : [`default: ${fallback}`]), `env: ${variableOf(name)}`]
  const option = new Option(`${flagOf(name)} <${placeholder}>`, `${setting.help} (${notes.join(', ')})`)
  return setting.type === 'list' ? option.argParser(texts) : option
}

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
