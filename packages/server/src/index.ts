export { examine, type Check, type Examination } from './hosts/examine.ts'
export { openServer, type OpenServer, type ServerAddresses } from './open-server.ts'
export { listenForControl, startServer, type ListeningControlPlane, type RunningServer } from './start-server.ts'
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
} from './settings/index.ts'
