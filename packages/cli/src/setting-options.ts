import { flagOf, SETTING_TOPICS, SETTINGS, variableOf, type Setting, type SettingName, type SettingSource } from '@carpool/server'
import { Option, type Command } from 'commander'
import { texts } from './option-parsers.ts'

/** One option for each setting of the server, by topic. @param without settings that the verb has an option of its own for */
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
