import { CarpoolError } from '@carpool/core'
import type { SettingName, ServerSettings } from './table.ts'

type NumberName = { [K in SettingName]: ServerSettings[K] extends number ? K : never }[SettingName]

/** Where the value of a setting came from; undefined: it is the default. */
type OriginOf = (name: SettingName) => string | undefined

/** Settings of which the first must not be above the second. */
const NOT_ABOVE: ReadonlyArray<readonly [lesser: NumberName, greater: NumberName]> = [
  ['maxUrlBytes', 'maxHeaderBytes'],
  ['maxBodyBytes', 'maxBufferedBytes'],
  ['minHosts', 'maxHosts'],
  ['hostLimitMin', 'hostLimitInitial'],
  ['hostLimitInitial', 'hostLimitMax'],
  ['saturationPercent', 'panicPercent'],
  ['quarantineAfter', 'disableAfter'],
]

/** Checks settings against each other. @throws CarpoolError `invalid-setting`, naming one that was given and what it contradicts */
export function checkRelations(settings: ServerSettings, originOf: OriginOf): void {
  const nameOf = (name: NumberName): string => originOf(name) ?? name
  const valueOf = (name: NumberName): string =>
    originOf(name) === undefined ? `${settings[name]}, its default` : String(settings[name])
  for (const [lesser, greater] of NOT_ABOVE) {
    if (settings[lesser] <= settings[greater]) continue
    const [wrong, relation, other] =
      originOf(lesser) === undefined ? ([greater, 'at least', lesser] as const) : ([lesser, 'at most', greater] as const)
    const detail = `${nameOf(wrong)} must be ${relation} ${nameOf(other)} (${valueOf(other)}), not ${settings[wrong]}.`
    throw new CarpoolError('invalid-setting', detail)
  }
}
