import { CarpoolError, checkFunctionName, LIMIT_RANGES, nearestName } from '@carpool/core'
import { access, readFile, stat } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Place } from './entry.ts'
import { SDK_NAME, sdkUrl } from './sdk-fallback.ts'

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
  readonly streamMs?: number
  readonly idleMs?: number
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
  streamMs: wholeNumber(LIMIT_RANGES.streamMs),
  idleMs: wholeNumber(LIMIT_RANGES.idleMs),
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
    const problem = given === undefined ? undefined : CHECKS[key as keyof FunctionConfig](given)
    if (problem !== undefined) throw invalid(where, `${key} ${problem}`)
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

function invalid(where: string, problem: string): CarpoolError {
  return new CarpoolError('invalid-config', `${where}: ${problem}`)
}

const CONFIG_FILES = ['carpool.config.ts', 'carpool.config.js', 'carpool.config.mjs', 'carpool.config.json']

interface LoadedConfig {
  readonly config: FunctionConfig
  /** Absolute path; absent if the folder has none. */
  readonly configFile?: string
}

/**
 * Loads the config file of a folder. A script is run by import(), as code of the author on the author's machine.
 * @throws CarpoolError `invalid-config`, also if there is more than one
 */
export async function loadConfig({ folder, file }: Place): Promise<LoadedConfig> {
  if (file !== undefined) return { config: {} }
  const found = (await Promise.all(CONFIG_FILES.map((name) => exists(folder, name)))).flat()
  const [name, second] = found
  if (name === undefined) return { config: {} }
  if (second !== undefined) throw new CarpoolError('invalid-config', `There are ${found.join(' and ')}; keep one of them.`)
  const configFile = join(folder, name)
  const value = name.endsWith('.json') ? await readJson(configFile, name) : await importDefault(configFile, name)
  return { config: checkFunctionConfig(value, name), configFile }
}

async function exists(folder: string, name: string): Promise<string[]> {
  return access(join(folder, name)).then(
    () => [name],
    () => [],
  )
}

async function readJson(path: string, name: string): Promise<unknown> {
  const text = await readFile(path, 'utf8')
  try {
    // `$schema` is for editors.
    return JSON.parse(text, (key, value: unknown) => (key === '$schema' ? undefined : value))
  } catch (cause) {
    throw new CarpoolError('invalid-config', `${name} is no valid JSON: ${(cause as Error).message}`, { cause })
  }
}

async function importDefault(path: string, name: string): Promise<unknown> {
  const url = pathToFileURL(path)
  // Modules are cached by URL: the time of the last change makes a changed file a new one.
  url.searchParams.set('changed', String((await stat(path)).mtimeMs))
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== SDK_NAME) return next(specifier, context)
      try {
        return next(specifier, context)
      } catch (error) {
        const fallback = sdkUrl()
        if (fallback === undefined) throw error
        return next(fallback, context)
      }
    },
  })
  let module: { default?: unknown }
  try {
    module = (await import(url.href)) as { default?: unknown }
  } catch (cause) {
    throw new CarpoolError('invalid-config', `${name} does not load: ${String(cause)}`, { cause })
  } finally {
    hooks.deregister()
  }
  if (module.default === undefined) throw new CarpoolError('invalid-config', `${name} has no default export.`)
  return module.default
}
