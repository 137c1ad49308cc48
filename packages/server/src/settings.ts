import { CarpoolError } from '@carpool/core'

interface SettingBase {
  /** Long flag without dashes; the environment variable is `CARPOOL_` and this in capitals with underscores. */
  readonly flag: string
  readonly help: string
}

interface NumberSetting extends SettingBase {
  readonly type: 'number'
  readonly default: number
  readonly min: number
  readonly max: number
  readonly unit: string
}

interface TextSetting extends SettingBase {
  readonly type: 'text'
  readonly default: string
  /** The values that it may have; absent: any. */
  readonly choices?: readonly string[]
}

/** May be given more than once; in the environment the values stand between commas. */
interface ListSetting extends SettingBase {
  readonly type: 'list'
  readonly default: readonly string[]
}

export type Setting = NumberSetting | TextSetting | ListSetting

/** Every setting of the server: the one table behind the flags, the environment variables and their checks. */
export const SETTINGS = {
  host: { type: 'text', flag: 'host', default: '127.0.0.1', help: 'address of the data plane' },
  port: {
    type: 'number',
    flag: 'port',
    default: 8080,
    min: 0,
    max: 65_535,
    unit: 'port',
    help: 'port of the data plane; 0 picks a free one',
  },
  adminPort: {
    type: 'number',
    flag: 'admin-port',
    default: 8081,
    min: 0,
    max: 65_535,
    unit: 'port',
    help: 'port of the control plane, on loopback; 0 picks a free one',
  },
  data: { type: 'text', flag: 'data', default: '.carpool', help: 'folder for bundles, metadata, logs and the ledger' },
  hosts: { type: 'number', flag: 'hosts', default: 1, min: 1, max: 64, unit: 'processes', help: 'number of host processes' },
  maxIsolates: {
    type: 'number',
    flag: 'max-isolates',
    default: 500,
    min: 1,
    max: 10_000,
    unit: 'isolates',
    help: 'most functions kept warm in one host process; the least recently used leaves first',
  },
  prewarm: {
    type: 'number',
    flag: 'prewarm',
    default: 2,
    min: 0,
    max: 64,
    unit: 'isolates',
    help: 'blank isolates kept ready in each host process',
  },
  maxInFlight: {
    type: 'number',
    flag: 'max-in-flight',
    default: 20_000,
    min: 1,
    max: 1_000_000,
    unit: 'invocations',
    help: 'most invocations at the same time, in all',
  },
  maxBodyBytes: {
    type: 'number',
    flag: 'max-body-bytes',
    default: 6 * 1024 * 1024,
    min: 0,
    max: 256 * 1024 * 1024,
    unit: 'bytes',
    help: 'largest body of a request, and of a response',
  },
  maxBundleBytes: {
    type: 'number',
    flag: 'max-bundle-bytes',
    default: 10 * 1024 * 1024,
    min: 1,
    max: 64 * 1024 * 1024,
    unit: 'bytes',
    help: 'largest bundle that a deploy may send',
  },
  retentionDays: {
    type: 'number',
    flag: 'retention-days',
    default: 30,
    min: 1,
    max: 3_650,
    unit: 'days',
    help: 'how long the records of single invocations are kept; hourly totals stay',
  },
  allowEgress: {
    type: 'list',
    flag: 'allow-egress',
    default: [],
    help: 'private address range that functions may fetch from, in CIDR form; repeatable',
  },
  logLevel: {
    type: 'text',
    flag: 'log-level',
    default: 'info',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
    help: 'least level of the server log, which goes to stderr',
  },
} as const satisfies Record<string, Setting>

type SettingName = keyof typeof SETTINGS
type SettingValue<S extends Setting> = S extends NumberSetting ? number : S extends ListSetting ? readonly string[] : string

/** The settings in force: typed, checked and frozen. */
export type ServerSettings = { readonly [K in SettingName]: SettingValue<(typeof SETTINGS)[K]> }

export type SettingSource = Readonly<Record<string, string | readonly string[] | undefined>>

/** The environment variable of a setting, such as `CARPOOL_ADMIN_PORT`. */
export function variableOf(setting: Setting): string {
  return `CARPOOL_${setting.flag.toUpperCase().replaceAll('-', '_')}`
}

/**
 * Reads every setting: a flag wins over the environment, which wins over the default.
 * @param flags texts by setting name, as `SETTINGS` spells it
 * @throws CarpoolError `invalid-setting`, naming the setting, where it came from and its range
 */
export function resolveSettings(flags: SettingSource, env: SettingSource): ServerSettings {
  const unknown = Object.keys(flags).find((name) => !Object.hasOwn(SETTINGS, name))
  if (unknown !== undefined) throw new CarpoolError('invalid-setting', `There is no setting ${unknown}.`)
  const resolved = Object.entries<Setting>(SETTINGS).map(([name, setting]) => {
    if (flags[name] !== undefined) return [name, parse(setting, flags[name], `--${setting.flag}`)]
    const variable = variableOf(setting)
    if (env[variable] !== undefined && env[variable] !== '') return [name, parse(setting, env[variable], variable)]
    return [name, setting.default]
  })
  return Object.freeze(Object.fromEntries(resolved) as ServerSettings)
}

function parse(setting: Setting, given: string | readonly string[], origin: string): unknown {
  if (setting.type === 'list') return typeof given === 'string' ? given.split(',').map((part) => part.trim()) : given
  const text = String(given)
  if (setting.type === 'text') {
    if (setting.choices?.includes(text) ?? true) return text
    throw new CarpoolError(
      'invalid-setting',
      `${origin} must be one of ${setting.choices?.join(', ')}, not ${JSON.stringify(text)}.`,
    )
  }
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (Number.isInteger(value) && value >= setting.min && value <= setting.max) return value
  throw new CarpoolError(
    'invalid-setting',
    `${origin} must be a whole number from ${setting.min} to ${setting.max} (${setting.unit}), not ${JSON.stringify(text)}.`,
  )
}
