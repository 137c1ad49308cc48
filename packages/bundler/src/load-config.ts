import { access, readFile, stat } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { CarpoolError } from '@carpool/core'
import type { Place } from './entry.ts'
import { checkFunctionConfig, type FunctionConfig } from './function-config.ts'
import { SDK_NAME, sdkUrl } from './sdk-fallback.ts'

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
