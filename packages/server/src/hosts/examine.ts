import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { SecretKey } from '@carpool/access'
import { CarpoolError } from '@carpool/core'
import type { HostProgram } from '@carpool/fleet'
import { requireLayers, type LayerReport, type Sandbox } from '@carpool/sandbox'
import { Connection, type ToHost, type ToServer } from '@carpool/wire'
import { flagOf } from '../settings/setting.ts'
import { SETTINGS, type ServerSettings } from '../settings/table.ts'
import { addonProblem, hostPrograms } from './host-files.ts'
import { hostProgram } from './host-program.ts'
import { openSandbox, requiredLayers } from './host-sandbox.ts'

/** What a server would find on this machine, with these settings. */
export interface Examination {
  readonly checks: readonly Check[]
  /** The layers around host processes, the innermost first. */
  readonly layers: readonly LayerReport[]
}

/** Looks at all that a server needs, without starting one. Takes about a second. */
export async function examine(settings: ServerSettings): Promise<Examination> {
  const { version, platform, arch, versions } = process
  const sandbox = await openSandbox(settings, undefined, true)
  const checks = [
    checkNode(version.slice(1)),
    checkAddon(platform, arch, versions.modules),
    await checkHost(settings, sandbox),
    checkSandbox(settings, sandbox),
    checkDataFolder(settings.data),
    ...checkSecretKey(settings),
    await checkPort('port', settings),
    await checkPort('adminPort', settings),
  ]
  return { checks, layers: sandbox.layers }
}

async function checkHost(settings: ServerSettings, sandbox: Sandbox): Promise<Check> {
  const program = hostProgram(settings, await hostPrograms(), sandbox)
  const problem = await tryHost({ ...program, launcher: sandbox })
  return problem === undefined
    ? { name: 'host process', state: 'ok', detail: 'One was started in the sandbox, and made an isolate.' }
    : { name: 'host process', state: 'failed', detail: `One did not start: ${problem}` }
}

/** What is not asked for and not there is a warning. */
function checkSandbox(settings: ServerSettings, { layers }: Sandbox): Check {
  const name = 'sandbox'
  try {
    const required = requiredLayers(settings)
    if (required !== undefined) requireLayers(layers, required)
  } catch (cause) {
    return { name, state: 'failed', detail: CarpoolError.from(cause).message }
  }
  const on = layers.filter(({ state }) => state === 'on').length
  return { name, state: on === layers.length ? 'ok' : 'warning', detail: `${on} of ${layers.length} layers are on.` }
}

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

/** The key of secrets, if it is to be elsewhere than in the data folder, or is there already. Makes nothing. */
export function checkSecretKey({ data, secretKeyFile }: Pick<ServerSettings, 'data' | 'secretKeyFile'>): Check[] {
  const path = resolve(secretKeyFile || join(data, 'secret-key'))
  if (secretKeyFile === '' && !existsSync(path)) return []
  const { fault } = new SecretKey(path)
  const name = 'secret key'
  if (fault !== undefined) return [{ name, state: 'warning', detail: `${fault} (${flagOf('secretKeyFile')})` }]
  return [{ name, state: 'ok', detail: existsSync(path) ? `${path} can be read.` : `${path} can be made.` }]
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

/** How long a host may take to make its first isolate, in ms, on a machine that is busy. */
const READY_MS = 30_000
/** Characters of stderr that are kept. */
const MAX_STDERR_LENGTH = 4_096

/**
 * Starts one host process as a server does, and waits until it has made an isolate.
 * @returns why it could not; undefined if all is well
 */
async function tryHost(program: HostProgram & { launcher: NonNullable<HostProgram['launcher']> }): Promise<string | undefined> {
  const host = program.launcher.spawn(program)
  const { child } = host
  let stderr = ''
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    if (stderr.length < MAX_STDERR_LENGTH) stderr += chunk
  })
  const limit = setTimeout(() => host.kill(), READY_MS)
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  try {
    return await new Promise<string | undefined>((resolve) => {
      child.once('error', (cause) => resolve((cause as NodeJS.ErrnoException).code ?? cause.message))
      child.once('close', (code, childSignal) => {
        const { exitCode, signal } = host.endOf(code, childSignal)
        resolve(lastError(stderr) ?? `It ended with ${signal ?? `exit code ${exitCode}`}.`)
      })
      const connection = new Connection<ToServer, ToHost>(child.stdio[3] as Duplex, {
        onMessage: (message) => {
          if (message.type === 'ready') resolve(undefined)
        },
        // The end of the process says more.
        onClose: () => {},
      })
      connection.send({ ...program.setup, prewarm: 1 }, program.runtime)
    })
  } finally {
    clearTimeout(limit)
    host.kill()
    if (child.pid !== undefined) await closed
  }
}

/** The line of a stack that says what is wrong. */
function lastError(stderr: string): string | undefined {
  const lines = stderr.split('\n').map((line) => line.trim())
  return lines.findLast((line) => /^(?:\w*Error|bwrap|setpriv|.*: not found)\b/.test(line)) ?? lines.find((line) => line !== '')
}
