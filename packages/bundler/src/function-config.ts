import { CarpoolError, LIMIT_RANGES, checkFunctionName } from '@carpool/core'
import { nearestName } from './nearest-name.ts'

/** What `carpool.config.*` may say; the same as `FunctionConfig` of the SDK. */
export interface FunctionConfig {
  readonly name?: string
  /** Entry file, relative to the folder. */
  readonly entry?: string
  /** `src/index.handler`, or only the export. */
  readonly handler?: string
  readonly memoryMb?: number
  readonly cpuMs?: number
  readonly timeoutMs?: number
  readonly concurrency?: number
  readonly env?: Readonly<Record<string, string>>
  /** Hosts that it may fetch from. */
  readonly egress?: readonly string[]
}

/** Says what is wrong with a value, or nothing. */
type Check = (value: unknown) => string | undefined

const CHECKS: { readonly [K in keyof Required<FunctionConfig>]: Check } = {
  name: checkName,
  entry: checkText,
  handler: checkText,
  memoryMb: wholeNumber(LIMIT_RANGES.memoryMb),
  cpuMs: wholeNumber(LIMIT_RANGES.cpuMs),
  timeoutMs: wholeNumber(LIMIT_RANGES.wallMs),
  concurrency: wholeNumber(LIMIT_RANGES.concurrency),
  env: checkEnv,
  egress: checkTexts,
}

const VARIABLE_PATTERN = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Checks what a config file holds.
 * @param where the file, as messages name it
 * @throws CarpoolError `invalid-config`, naming the file, the key and what it may be
 */
export function checkFunctionConfig(value: unknown, where: string): FunctionConfig {
  if (!isRecord(value)) throw invalid(where, `the config must be an object, not ${kindOf(value)}.`)
  for (const [key, given] of Object.entries(value)) {
    if (!Object.hasOwn(CHECKS, key)) {
      const near = nearestName(key, Object.keys(CHECKS))
      const hint = near === undefined ? `there are ${Object.keys(CHECKS).join(', ')}` : `did you mean ${near}?`
      throw invalid(where, `there is no setting ${JSON.stringify(key)}; ${hint}`)
    }
    const complaint = given === undefined ? undefined : CHECKS[key as keyof FunctionConfig](given)
    if (complaint !== undefined) throw invalid(where, `${key} ${complaint}`)
  }
  return Object.fromEntries(Object.entries(value).filter(([, given]) => given !== undefined)) as FunctionConfig
}

function checkName(value: unknown): string | undefined {
  if (typeof value !== 'string') return `must be text, not ${kindOf(value)}.`
  try {
    checkFunctionName(value)
    return undefined
  } catch (error) {
    return `is not valid: ${CarpoolError.from(error).message}`
  }
}

function checkText(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? undefined : `must be text that is not empty, not ${kindOf(value)}.`
}

function wholeNumber({ min, max, unit }: { readonly min: number; readonly max: number; readonly unit: string }): Check {
  return (value) =>
    Number.isInteger(value) && Number(value) >= min && Number(value) <= max
      ? undefined
      : `must be a whole number from ${min} to ${max} ${unit}, not ${kindOf(value)}.`
}

/** What a host is, the server knows. */
function checkTexts(value: unknown): string | undefined {
  if (!Array.isArray(value)) return `must be an array of texts, not ${kindOf(value)}.`
  const index = value.findIndex((text) => typeof text !== 'string' || text.trim() === '')
  return index < 0 ? undefined : `must hold texts that are not empty; entry ${index + 1} is ${kindOf(value[index])}.`
}

function checkEnv(value: unknown): string | undefined {
  if (!isRecord(value)) return `must be an object of texts by name, not ${kindOf(value)}.`
  for (const [name, text] of Object.entries(value)) {
    if (!VARIABLE_PATTERN.test(name))
      return `holds ${JSON.stringify(name)}; a variable's name is letters, digits and "_", no digit first.`
    if (typeof text !== 'string') return `holds ${name}, which must be text, not ${kindOf(text)}.`
  }
  return undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Values of numbers and texts help the reader; those of variables are not shown, for they may be secrets. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return value.trim() === '' ? 'an empty text' : 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function invalid(where: string, complaint: string): CarpoolError {
  return new CarpoolError('invalid-config', `${where}: ${complaint}`)
}
