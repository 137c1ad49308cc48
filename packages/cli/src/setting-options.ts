import type { Setting, SettingSource } from '@carpool/server'
import { Option, type Command } from 'commander'
import { texts } from './option-parsers.ts'

type Settings = Readonly<Record<string, Setting>>

/** One option for each setting of the server. @param variableOf gives the environment variable of a setting */
export function addSettingOptions(command: Command, settings: Settings, variableOf: (setting: Setting) => string): void {
  for (const setting of Object.values(settings)) {
    const option = optionOf(setting)
    const fallback = setting.default.toString()
    const notes = [...(fallback === '' ? [] : [`default: ${fallback}`]), `env: ${variableOf(setting)}`]
    option.description = `${setting.help} (${notes.join(', ')})`
    command.addOption(option)
  }
}

/** What was given on the command line, by setting. */
export function settingFlags(settings: Settings, options: Readonly<Record<string, unknown>>): SettingSource {
  return Object.fromEntries(
    Object.entries(settings).map(([name, setting]) => [
      name,
      options[optionOf(setting).attributeName()] as SettingSource[string],
    ]),
  )
}

function optionOf(setting: Setting): Option {
  const placeholder = { number: 'number', text: 'text', list: 'text' }[setting.type]
  const option = new Option(`--${setting.flag} <${placeholder}>`)
  return setting.type === 'list' ? option.argParser(texts) : option
}
