import { CarpoolError } from '@carpool/core'
import { describeRange, type ListSetting, type NumberSetting, type Setting, type TextSetting } from './setting.ts'

/** A value as it was given, and where. */
export interface Given {
  /** A text from the command line or the environment; anything that JSON can hold from the file. */
  readonly value: unknown
  /** The name by which whoever gave it knows it, such as `--max-hosts`. */
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
  const { min, zeroMeans } = setting
  const max = setting.max === 'cores' ? cores : setting.max
  if (typeof value === 'number' && Number.isInteger(value)) {
    if ((value >= min && value <= max) || (value === 0 && zeroMeans !== undefined)) return value
  }
  const orZero = zeroMeans !== undefined && min > 0 ? '0 or ' : ''
  const what = setting.max === 'cores' ? 'the cores of this machine' : setting.unit
  throw refusal(given, `must be ${orZero}a whole number from ${min} to ${max} (${what})`)
}

/** Plain digits alone: no sign, exponent, point or other base. */
function numberOf(text: unknown): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN
}

function readText(setting: TextSetting, given: Given): string {
  if (typeof given.value !== 'string') throw refusal(given, 'must be a text')
  if (setting.choices?.includes(given.value) ?? true) return given.value
  throw refusal(given, `must be one of ${describeRange(setting)}`)
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
