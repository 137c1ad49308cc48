import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type {
  DeployRequest,
  FunctionInfo,
  HostInfo,
  InvocationQuery,
  InvocationRecord,
  ServerInfo,
  UsageGroup,
  UsageRow,
} from '@carpool/core'
import { parseJsonLine, startChildServer } from './child-server.ts'
import { repositoryPath } from './repository.ts'

const CLI = 'packages/cli/bin/carpool.js'
const REPOSITORY_FOLDER = repositoryPath('')
const HOST_PROGRAM = 'host/src/process.ts'

export interface CarpoolOptions {
  /** Folder that outlives the server, so that it can be started again on the same functions. */
  readonly dataDir: string
  /** Further flags of `carpool serve`. */
  readonly flags?: readonly string[]
  /** Root folder of the checkout whose server is started. Default: this one. */
  readonly checkout?: string
  /** Flags of Node.js for the server's process. */
  readonly nodeFlags?: readonly string[]
}

/** A Carpool server with its host processes, started and used through the command. */
export interface CarpoolServer extends AsyncDisposable {
  readonly pid: number
  /** Address of the data plane, without a slash at the end. */
  readonly url: string
  /** What the server wrote to stderr last. */
  readonly stderr: string
  /** Runs a command of `carpool` against it, as users do, and gives its output. */
  command(...args: readonly string[]): Promise<string>
  /** `carpool deploy`. */
  deploy(path: string, name: string): Promise<FunctionInfo>
  /** What `carpool deploy` sends, without bundling: for a deploy at any moment and often. */
  deployCode(code: string, name: string): Promise<FunctionInfo>
  hosts(): Promise<readonly HostInfo[]>
  /** `GET /v1/usage`. A server of before there was a ledger has none of these three. */
  usage(by: UsageGroup): Promise<readonly UsageRow[]>
  /** `GET /v1/invocations`. The server gives 1,000 at most. */
  invocations(query: InvocationQuery): Promise<readonly InvocationRecord[]>
  /** In Prometheus' text format. */
  metrics(): Promise<string>
  stop(): Promise<void>
}

/** Whether a process, as the watch names it, runs function code. */
export function isCarpoolHost(program: string): boolean {
  return program === HOST_PROGRAM
}

export async function startCarpool({
  dataDir,
  flags = [],
  checkout = REPOSITORY_FOLDER,
  nodeFlags = [],
}: CarpoolOptions): Promise<CarpoolServer> {
  // A setting or a server of the user's must not slip into a measurement, nor ours become the one that their commands find.
  const env: NodeJS.ProcessEnv = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith('CARPOOL_')))
  env['CARPOOL_STATE_DIR'] = join(dataDir, 'state')
  const cli = join(checkout, CLI)
  const args = ['serve', '--port', '0', '--admin-port', '0', '--data', dataDir, '--log-level', 'warn', '--json', ...flags]
  const child = await startChildServer({
    command: process.execPath,
    args: [...nodeFlags, cli, ...args],
    env,
    parseReady: (line) => {
      const { url, adminUrl } = parseJsonLine<{ url: string; adminUrl: string }>(line) ?? {}
      return url !== undefined && adminUrl !== undefined ? { url, adminUrl } : undefined
    },
  })
  const { url, adminUrl } = child.ready
  const token = (await readFile(join(dataDir, 'admin-token'), 'utf8')).trim()
  const control = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
    const headers = { 'authorization': `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(adminUrl + path, { ...init, headers })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as T
  }
  const command = async (...given: readonly string[]): Promise<string> => {
    const { stdout } = await promisify(execFile)(process.execPath, [cli, ...given, '--url', adminUrl, '--token', token], { env })
    return stdout
  }
  return {
    pid: child.pid,
    url,
    get stderr() {
      return child.stderr
    },
    command,
    deploy: async (path, name) => JSON.parse(await command('deploy', path, '--name', name, '--json')) as FunctionInfo,
    deployCode: async (code, name) => {
      const sourceMap = JSON.stringify({ version: 3, sources: [], names: [], mappings: '' })
      const body: DeployRequest = { code, sourceMap }
      return control(`/v1/functions/${name}/revisions`, { method: 'POST', body: JSON.stringify(body) })
    },
    hosts: async () => (await control<ServerInfo>('/v1/server')).hosts,
    usage: async (by) => (await control<{ rows: UsageRow[] }>(`/v1/usage?by=${by}`)).rows,
    invocations: async ({ functionName, sinceMs, ...rest }) => {
      const named = { ...rest, function: functionName, since: sinceMs }
      const given = Object.entries(named).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]))
      const path = `/v1/invocations?${new URLSearchParams(given).toString()}`
      return (await control<{ invocations: InvocationRecord[] }>(path)).invocations
    },
    metrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    stop: () => child.stop(),
    [Symbol.asyncDispose]: () => child.stop(),
  }
}
