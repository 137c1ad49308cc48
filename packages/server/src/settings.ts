export { CONFIG_VARIABLE, DEFAULT_CONFIG_FILE, readConfigFile, type ConfigFile } from './settings/config-file.ts'
export { configSchema } from './settings/config-schema.ts'
export {
  resolveSettings,
  settingsInForce,
  type SettingInForce,
  type SettingSource,
  type SettingSurroundings,
} from './settings/resolve-settings.ts'
export { describeRange, flagOf, variableOf, type Setting } from './settings/setting.ts'
export { SETTINGS, SETTING_TOPICS, type ServerSettings, type SettingName } from './settings/table.ts'
