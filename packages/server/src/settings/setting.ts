import { CarpoolError } from '@carpool/core'

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
  /** 0 may be given although it is below `min`; `help` says what it stands for. Default: false. */
  readonly orZero?: boolean
}

export interface TextSetting extends SettingBase {
  readonly type: 'text'
  /** Empty: the setting may be empty, which stands for something. Else it may not: a shell makes that of a missing variable. */
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

export const VARIABLE_PREFIX = 'CARPOOL_'

/** The environment variable of a setting, such as `CARPOOL_ADMIN_PORT`. */
export function variableOf(name: string): string {
  return `${VARIABLE_PREFIX}${kebabCase(name).toUpperCase().replaceAll('-', '_')}`
}

function kebabCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** What values a setting takes, for people. @param cores absent: of any machine */
export function describeRange(setting: Setting, cores?: number): string {
  switch (setting.type) {
    case 'number': {
      const { min, max, orZero = false } = setting
      const range = `${min} to ${max === 'cores' ? (cores ?? 'the cores') : max}`
      return orZero ? `0, or ${range}` : range
    }
    case 'text':
      return setting.choices?.join(', ') ?? (setting.default === '' ? 'any text' : 'any text but an empty one')
    case 'list':
      return setting.items
  }
}

/** A value as it was given, and where. */
export interface Given {
  /** A text from the command line or the environment; anything that JSON can hold from the file. */
  readonly value: unknown
  /** What it was given as, such as `--max-hosts`. */
  readonly origin: string
  /** Whether it has types of its own: then a number is no text, and a list is no text with commas. */
  readonly isTyped: boolean
}

export type SettingValue = number | string | readonly string[]

const MAX_SHOWN = 80

/** Reads one value. @throws CarpoolError `invalid-setting`, naming where it came from, the range and the value */
export function readValue(setting: Setting, given: Given, cores: number): SettingValue {
  switch (setting.type) {
    case 'number':
      return readNumber(setting, given, cores)
    case 'text':
      return readText(setting, given)
    case 'list':
      return readList(setting, given)
  }
}

function readNumber(setting: NumberSetting, given: Given, cores: number): number {
  const value = given.isTyped ? given.value : numberOf(given.value)
  const { min, orZero = false } = setting
  const max = setting.max === 'cores' ? cores : setting.max
  if (typeof value === 'number' && Number.isInteger(value)) {
    if ((value >= min && value <= max) || (value === 0 && orZero)) return value
  }
  const what = setting.max === 'cores' ? 'the cores of this machine' : setting.unit
  throw refusal(given, `must be ${orZero ? '0 or ' : ''}a whole number from ${min} to ${max} (${what})`)
}

/** Plain digits alone: no sign, exponent, point or other base. */
function numberOf(text: unknown): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
}

function readText(setting: TextSetting, given: Given): string {
  if (typeof given.value !== 'string') throw refusal(given, 'must be a text')
  if (setting.choices?.includes(given.value) === false) throw refusal(given, `must be one of ${describeRange(setting)}`)
  if (given.value.trim() === '' && setting.default !== '')
    throw new CarpoolError('invalid-setting', `${given.origin} must not be empty.`)
  return given.value
}

function readList({ items, checkItem }: ListSetting, given: Given): readonly string[] {
  const list = given.isTyped || typeof given.value !== 'string' ? given.value : given.value.split(',').map((part) => part.trim())
  if (!isListOfTexts(list)) throw refusal(given, `must be a list of ${items}`)
  for (const item of list) check(item, given.origin, checkItem)
  return list
}

function check(item: string, origin: string, checkItem: ListSetting['checkItem']): void {
  try {
    checkItem?.(item)
  } catch (cause) {
    throw new CarpoolError('invalid-setting', `${origin}: ${(cause as Error).message}`, { cause })
  }
}

function isListOfTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string')
}

function refusal({ origin, value }: Given, must: string): CarpoolError {
  const text = JSON.stringify(value)
  const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
  return new CarpoolError('invalid-setting', `${origin} ${must}, not ${shown}.`)
}

/** Its JSON Schema. What depends on the machine, such as its cores, is not in it. */
export function schemaOf(setting: Setting): object {
  const base = { description: `${setting.help}. Range: ${describeRange(setting)}.`, default: setting.default }
  switch (setting.type) {
    case 'number': {
      const { min, max, orZero = false } = setting
      const range = { type: 'integer', minimum: min, ...(max !== 'cores' && { maximum: max }) }
      return { ...base, ...(orZero ? { anyOf: [{ const: 0 }, range] } : range) }
    }
    case 'text':
      return {
        ...base,
        type: 'string',
        ...(setting.choices !== undefined ? { enum: setting.choices } : setting.default !== '' && { pattern: String.raw`\S` }),
      }
    case 'list':
      return {
        ...base,
        type: 'array',
        items: { type: 'string', ...(setting.choices !== undefined && { enum: setting.choices }) },
      }
  }
}
