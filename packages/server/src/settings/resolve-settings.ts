import { CarpoolError, nearestName } from '@carpool/core'
import { Machine } from '@carpool/fleet'
import { CONFIG_VARIABLE, type ConfigFile } from './config-file.ts'
import {
  describeRange,
  flagOf,
  readValue,
  variableOf,
  type Given,
  type Setting,
  type SettingValue,
  VARIABLE_PREFIX,
} from './setting.ts'
import { isSettingName, SETTINGS, type ServerSettings, type SettingName } from './table.ts'

export type SettingSource = Readonly<Record<string, string | readonly string[] | undefined>>

export interface SettingSurroundings {
  readonly file?: ConfigFile | undefined
  /** Cores that the server may use; a fraction is rounded down, but not to 0. Default: those of {@link Machine}. */
  readonly cores?: number
}

/** A setting with where its value came from. */
export interface SettingInForce {
  readonly name: SettingName
  readonly value: SettingValue
  readonly source: 'flag' | 'environment' | 'file' | 'default'
  /** What it was given as, such as `--max-hosts`; absent: it is the default. */
  readonly origin?: string
  readonly unit?: string
  /** What it may be on this machine, for people. */
  readonly range: string
}

/**
 * Reads every setting: a flag wins over the environment, which wins over the file, which wins over the default.
 * @param flags texts by setting name, as `SETTINGS` spells it
 * @throws CarpoolError `invalid-setting`, naming the setting where it was given, its range and the value
 */
export function resolveSettings(
  flags: SettingSource,
  env: SettingSource,
  surroundings: SettingSurroundings = {},
): ServerSettings {
  const settings = settingsInForce(flags, env, surroundings)
  return valuesOf(settings)
}

/** The same with where each value came from, in the order of the table. */
export function settingsInForce(
  flags: SettingSource,
  env: SettingSource,
  { file, cores = new Machine().cores }: SettingSurroundings = {},
): readonly SettingInForce[] {
  const unknown = Object.keys(flags).find((name) => !isSettingName(name))
  if (unknown !== undefined) throw new CarpoolError('invalid-setting', `There is no setting ${unknown}.`)
  refuseMisspelt(env)
  const wholeCores = wholeCoresOf(cores)
  const settings = Object.entries<Setting>(SETTINGS).map(([key, setting]): SettingInForce => {
    const name = key as SettingName
    const given = givenOf(name, flags, env, file)
    const value = given === undefined ? setting.default : readValue(setting, given, wholeCores)
    return {
      name,
      value: name === 'maxHosts' && value === 0 ? wholeCores : value,
      source: given?.source ?? 'default',
      ...(given !== undefined && { origin: given.origin }),
      ...(setting.type === 'number' && { unit: setting.unit }),
      range: describeRange(setting, wholeCores),
    }
  })
  checkRelations(valuesOf(settings), (name) => settings.find((one) => one.name === name)?.origin)
  return settings
}

/**
 * A variable that is nearly that of a setting would be without effect. Others are let be: Kubernetes sets some for each service,
 * and one may be called carpool.
 */
function refuseMisspelt(env: SettingSource): void {
  const known = [...Object.keys(SETTINGS).map(variableOf), CONFIG_VARIABLE]
  for (const [name, value = ''] of Object.entries(env)) {
    if (!name.startsWith(VARIABLE_PREFIX) || value === '' || known.includes(name) || OTHER_VARIABLES.has(name)) continue
    const given = name.slice(VARIABLE_PREFIX.length)
    const meant = nearestName(
      given,
      known.map((one) => one.slice(VARIABLE_PREFIX.length)),
      // HOME is not HOST.
      Math.max(1, Math.floor(given.length / 4)),
    )
    if (meant === undefined) continue
    const hint = `Did you mean ${VARIABLE_PREFIX}${meant}?`
    throw new CarpoolError('invalid-setting', `The environment has ${name}, which is no setting. ${hint}`)
  }
}

/** How many hosts would have a core each. */
function wholeCoresOf(cores: number): number {
  return Math.max(1, Math.floor(cores))
}

function valuesOf(settings: readonly SettingInForce[]): ServerSettings {
  return Object.freeze(Object.fromEntries(settings.map(({ name, value }) => [name, value])) as unknown as ServerSettings)
}

function givenOf(
  name: SettingName,
  flags: SettingSource,
  env: SettingSource,
  file: ConfigFile | undefined,
): (Given & Pick<SettingInForce, 'source'>) | undefined {
  if (flags[name] !== undefined) return { value: flags[name], source: 'flag', origin: flagOf(name), isTyped: false }
  const variable = variableOf(name)
  // An empty variable is how a shell or a container takes one away.
  if (env[variable] !== undefined && env[variable] !== '')
    return { value: env[variable], source: 'environment', origin: variable, isTyped: false }
  if (file !== undefined && Object.hasOwn(file.values, name))
    return { value: file.values[name], source: 'file', origin: `${name} in ${file.path}`, isTyped: true }
  return undefined
}

type NumberName = { [K in SettingName]: ServerSettings[K] extends number ? K : never }[SettingName]

/** Where the value of a setting came from; undefined: it is the default. */
type OriginOf = (name: SettingName) => string | undefined

/** Of the command (`packages/cli`) and of where servers are listed (`discovery`). */
const OTHER_VARIABLES: ReadonlySet<string> = new Set(['CARPOOL_URL', 'CARPOOL_TOKEN', 'CARPOOL_STATE_DIR'])

/** Settings of which the first must not be above the second. */
const NOT_ABOVE: ReadonlyArray<readonly [lesser: NumberName, greater: NumberName]> = [
  ['maxUrlBytes', 'maxHeaderBytes'],
  ['maxBodyBytes', 'maxBufferedBytes'],
  ['minHosts', 'maxHosts'],
  ['hostLimitMin', 'hostLimitInitial'],
  ['hostLimitInitial', 'hostLimitMax'],
  ['saturationPercent', 'panicPercent'],
  ['panicWindowMs', 'saturationWindowMs'],
  ['quarantineAfter', 'disableAfter'],
]

/**
 * Checks settings against each other.
 * @throws CarpoolError `invalid-setting`, naming one that was given and what it contradicts
 */
function checkRelations(settings: ServerSettings, originOf: OriginOf): void {
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
