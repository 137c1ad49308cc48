interface SettingBase {
  readonly help: string
}

/** A whole number. */
export interface NumberSetting extends SettingBase {
  readonly type: 'number'
  readonly default: number
  readonly min: number
  /** `cores`: as many as the cores that the server may use. */
  readonly max: number | 'cores'
  readonly unit: string
  /** What 0 stands for; it may then be given although it is below `min`. */
  readonly zeroMeans?: string
}

export interface TextSetting extends SettingBase {
  readonly type: 'text'
  readonly default: string
  /** The values that it may have; absent: any. */
  readonly choices?: readonly string[]
}

/** On the command line it may be given more than once; in the environment the values stand between commas. */
export interface ListSetting extends SettingBase {
  readonly type: 'list'
  readonly default: readonly string[]
  /** What a value is, in the plural. */
  readonly items: string
  /** The values that there are; absent: too many to name. */
  readonly choices?: readonly string[]
  /** @throws CarpoolError if the text is none; absent: whoever uses the setting checks it */
  readonly checkItem?: (text: string) => unknown
}

export type Setting = NumberSetting | TextSetting | ListSetting

/** The long flag of a setting, such as `--admin-port`. */
export function flagOf(name: string): string {
  return `--${kebabCase(name)}`
}

/** The environment variable of a setting, such as `CARPOOL_ADMIN_PORT`. */
export function variableOf(name: string): string {
  return `CARPOOL_${kebabCase(name).toUpperCase().replaceAll('-', '_')}`
}

function kebabCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** What values a setting takes, for people. @param cores absent: of any machine */
export function describeRange(setting: Setting, cores?: number): string {
  switch (setting.type) {
    case 'number': {
      const { min, max, zeroMeans } = setting
      const range = `${min} to ${max === 'cores' ? (cores ?? 'the cores') : max}`
      return zeroMeans !== undefined && min > 0 ? `0, or ${range}` : range
    }
    case 'text':
      return setting.choices?.join(', ') ?? 'any text'
    case 'list':
      return setting.items
  }
}
