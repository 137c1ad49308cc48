import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { CarpoolError, nearestName } from '@carpool/core'
import { JsonFault, parseJson } from './json-text.ts'
import { schemaOf } from './setting.ts'
import { isSettingName, SETTINGS } from './table.ts'

/** A file with settings, read but not checked yet. */
export interface ConfigFile {
  /** As it was given. */
  readonly path: string
  readonly values: Readonly<Record<string, unknown>>
}

interface ConfigFilePlace {
  /** What `--config` says. */
  readonly flag?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working folder, to which paths are relative. */
  readonly folder: string
}

export const CONFIG_VARIABLE = 'CARPOOL_CONFIG'
/** Read if it is there and no other is named. */
export const DEFAULT_CONFIG_FILE = 'carpool.server.json'

/** A file with every setting has a few kilobytes. */
const MAX_BYTES = 1024 * 1024

/** For editors, which find by it what keys there are. */
const SCHEMA_KEY = '$schema'

/**
 * Reads the file with the server's settings: the one that the flag names, else the environment, else `carpool.server.json` if it
 * is there.
 * @throws CarpoolError `invalid-setting`, naming the file and the place in it or the key
 */
export function readConfigFile({ flag, env, folder }: ConfigFilePlace): ConfigFile | undefined {
  const variable = env[CONFIG_VARIABLE]
  const [path, origin] =
    flag !== undefined ? [flag, '--config'] : variable ? [variable, CONFIG_VARIABLE] : [DEFAULT_CONFIG_FILE, undefined]
  const text = readText(resolve(folder, path), path, origin)
  return text === undefined ? undefined : { path, values: parseConfig(text, path) }
}

/** @param origin absent: nobody named the file, so that it need not be there */
function readText(absolutePath: string, path: string, origin: string | undefined): string | undefined {
  try {
    const file = statSync(absolutePath)
    const { size } = file
    // To read a pipe or a device may never end.
    if (!file.isFile()) throw Object.assign(new Error(), { code: 'it is no file' })
    if (size > MAX_BYTES) throw Object.assign(new Error(), { code: `it has ${size} bytes, the limit is ${MAX_BYTES}` })
    return readFileSync(absolutePath, 'utf8')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'ENOENT' && origin === undefined) return undefined
    const named = origin === undefined ? '' : ` (${origin})`
    const why = code === 'ENOENT' ? 'there is no such file' : code
    throw new CarpoolError('invalid-setting', `The file ${path}${named} cannot be read: ${why}.`, { cause })
  }
}

function parseConfig(text: string, path: string): ConfigFile['values'] {
  const { [SCHEMA_KEY]: _, ...values } = parseObject(text, path)
  for (const key of Object.keys(values)) {
    if (isSettingName(key)) continue
    const meant = nearestName(key, Object.keys(SETTINGS))
    const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
    throw new CarpoolError('invalid-setting', `${path} has the key ${JSON.stringify(key)}, which is no setting.${hint}`)
  }
  return values
}

function parseObject(text: string, path: string): Record<string, unknown> {
  try {
    const value = parseJson(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
    throw new JsonFault('the settings must stand in one object', text, 0)
  } catch (cause) {
    if (!(cause instanceof JsonFault)) throw cause
    const { line, column, message } = cause
    throw new CarpoolError('invalid-setting', `${path}, line ${line}, column ${column}: ${message}.`, { cause })
  }
}

/** JSON Schema of the file with the server's settings. What depends on the machine, such as its cores, is not in it. */
export function configSchema(): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Settings of a Carpool server',
    type: 'object',
    additionalProperties: false,
    properties: {
      $schema: { type: 'string' },
      ...Object.fromEntries(Object.entries(SETTINGS).map(([name, setting]) => [name, schemaOf(setting)])),
    },
  }
}
