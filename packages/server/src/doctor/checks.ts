import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, resolve } from 'node:path'
import { addonProblem } from '../required-addon.ts'
import { SETTINGS, flagOf, type ServerSettings } from '../settings.ts'

/** One thing that a server needs. `warning`: it runs without, but not as it should. */
export interface Check {
  readonly name: string
  readonly state: 'ok' | 'warning' | 'failed'
  /** What was found, in a sentence. */
  readonly detail: string
}

const NEEDED_MAJOR = 26

export function checkNode(version: string): Check {
  const isNewEnough = Number.parseInt(version, 10) >= NEEDED_MAJOR
  return isNewEnough
    ? { name: 'node', state: 'ok', detail: `Node.js ${version} runs this.` }
    : { name: 'node', state: 'failed', detail: `Node.js ${NEEDED_MAJOR} or newer is needed, this is ${version}.` }
}

/** Whether the addon is there that ties isolates to their host; it is built for some platforms. */
export function checkAddon(platform: string, arch: string, abi: string): Check {
  const name = 'addon'
  const problem = addonProblem(platform, arch, abi)
  return problem === undefined
    ? { name, state: 'ok', detail: `There is one for ${platform}-${arch}.` }
    : { name, state: 'failed', detail: problem }
}

/** Whether the data folder can be used, or made. Makes nothing. */
export function checkDataFolder(data: string): Check {
  const name = 'data folder'
  const folder = resolve(data)
  let existing = folder
  while (!existsSync(existing)) existing = dirname(existing)
  if (!statSync(existing).isDirectory()) return { name, state: 'failed', detail: `${existing} is not a folder.` }
  try {
    accessSync(existing, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return { name, state: 'failed', detail: `${existing} cannot be read and written by the user who runs this.` }
  }
  return { name, state: 'ok', detail: existing === folder ? `${folder} can be written.` : `${folder} can be made.` }
}

/** Whether somebody listens where the server is to. That may be this very server. */
export async function checkPort(setting: 'port' | 'adminPort', settings: ServerSettings): Promise<Check> {
  const port = settings[setting]
  const host = setting === 'port' ? settings.host : SETTINGS.host.default
  const name = setting === 'port' ? 'port' : 'admin port'
  const code = await listenError(host, port)
  const place = `${host}:${port} (${flagOf(setting)})`
  if (code === undefined) return { name, state: 'ok', detail: port === 0 ? 'A free one will be picked.' : `${place} is free.` }
  if (code === 'EADDRINUSE')
    return { name, state: 'warning', detail: `Somebody listens on ${place}, maybe a server that runs already.` }
  return { name, state: 'failed', detail: `${place} cannot be listened on: ${code}.` }
}

async function listenError(host: string, port: number): Promise<string | undefined> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', (cause: NodeJS.ErrnoException) => resolve(cause.code ?? cause.message))
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })
}
