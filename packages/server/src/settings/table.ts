import { ADMISSION } from './admission.ts'
import { CONTAINMENT } from './containment.ts'
import { ISOLATES } from './isolates.ts'
import { NETWORK } from './network.ts'
import { SANDBOX } from './sandbox.ts'
import { SCALING } from './scaling.ts'
import type { ListSetting, NumberSetting, Setting } from './setting.ts'
import { STORAGE } from './storage.ts'

/** The settings by topic, in the order in which they are shown. */
export const SETTING_TOPICS: ReadonlyArray<{ readonly title: string; readonly settings: Readonly<Record<string, Setting>> }> = [
  { title: 'Network', settings: NETWORK },
  { title: 'Storage and log', settings: STORAGE },
  { title: 'Hosts', settings: SCALING },
  { title: 'Admission', settings: ADMISSION },
  { title: 'Isolates', settings: ISOLATES },
  { title: 'Containment', settings: CONTAINMENT },
  { title: 'Sandbox', settings: SANDBOX },
]

/** Every setting of the server: the one table behind the flags, the environment variables, the file and their checks. */
export const SETTINGS = { ...NETWORK, ...STORAGE, ...SCALING, ...ADMISSION, ...ISOLATES, ...CONTAINMENT, ...SANDBOX } as const

export type SettingName = keyof typeof SETTINGS
type ValueOf<S extends Setting> = S extends NumberSetting ? number : S extends ListSetting ? readonly string[] : string

/** The settings in force: typed, checked and frozen. */
export type ServerSettings = { readonly [K in SettingName]: ValueOf<(typeof SETTINGS)[K]> }

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name)
}
