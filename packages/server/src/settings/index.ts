export { configSchema, CONFIG_VARIABLE, DEFAULT_CONFIG_FILE, readConfigFile, type ConfigFile } from './config-file.ts'
export {
  resolveSettings,
  settingsInForce,
  type SettingInForce,
  type SettingSource,
  type SettingSurroundings,
} from './resolve-settings.ts'
export { describeRange, flagOf, variableOf, type Setting } from './setting.ts'
export { SETTINGS, SETTING_TOPICS, type ServerSettings, type SettingName } from './table.ts'
