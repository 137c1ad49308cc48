export { startServer, type RunningServer } from './start-server.ts'
export { resolveSettings, SETTINGS, variableOf, type ServerSettings, type Setting, type SettingSource } from './settings.ts'
