export type { Check } from './doctor/checks.ts'
export { examine, type Examination } from './doctor/examine.ts'
export { closeControlPlane, listenForControl, urlOf } from './listening.ts'
export { openServer, startServer, type OpenServer, type RunningServer, type ServerAddresses } from './start-server.ts'
export {
  configSchema,
  CONFIG_VARIABLE,
  DEFAULT_CONFIG_FILE,
  describeRange,
  flagOf,
  readConfigFile,
  resolveSettings,
  SETTINGS,
  SETTING_TOPICS,
  settingsInForce,
  variableOf,
  type ConfigFile,
  type ServerSettings,
  type Setting,
  type SettingInForce,
  type SettingName,
  type SettingSource,
  type SettingSurroundings,
} from './settings.ts'
