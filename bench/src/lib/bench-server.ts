import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeployRequest, FunctionInfo, FunctionLimits, StatusInfo } from '@carpool/core'
import { startCarpool, type CarpoolServer } from './carpool-server.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { readHostProcesses } from './watch/host-processes.ts'
import { watchFleet, type FleetWatch } from './watch/fleet-watch.ts'

/** A server with a folder of its own, and what these benches want to know of it. */
export interface BenchServer extends AsyncDisposable {
  readonly carpool: CarpoolServer
  readonly dataDir: string
  /** `GET /v1/status` */
  status(): Promise<StatusInfo>
  /** Deploys a bundle with limits. */
  deployBundle(name: string, code: string, limits?: Partial<FunctionLimits>): Promise<void>
  /** `GET /v1/functions` */
  functions(): Promise<readonly FunctionInfo[]>
  /** `DELETE /v1/functions/:name` */
  deleteFunction(name: string): Promise<void>
  /** Samples the hosts until it is stopped. @param intervalMs default: 50 */
  watch(intervalMs?: number): Promise<FleetWatch>
  /** Polls until the status is as wanted. @throws Error if it is not within `timeoutMs` */
  until(wanted: string, isThere: (status: StatusInfo) => boolean, timeoutMs?: number): Promise<void>
  /** Polls until nothing starts or ends: the standby is there, and what tried out a deploy is gone. */
  untilSettled(): Promise<void>
}

const SAMPLE_INTERVAL_MS = 50
const UNTIL_TIMEOUT_MS = 15_000

export interface BenchServerOptions {
  /** Further flags of `carpool serve`. */
  readonly flags?: readonly string[]
  /** Folder that outlives the server. Default: one of its own, which goes with it. */
  readonly dataDir?: string
}

export async function startBenchServer({ flags = [], dataDir: given }: BenchServerOptions = {}): Promise<BenchServer> {
  await using stack = new AsyncDisposableStack()
  const dataDir = given ?? join(stack.use(await temporaryFolder()).path, 'data')
  const carpool = stack.use(await startCarpool({ dataDir, flags }))
  const { adminUrl, token } = readAnnouncement(join(dataDir, 'state'))
  const authorization = `Bearer ${token}`
  const control = async (path: string, init: RequestInit = {}): Promise<unknown> => {
    const headers = { authorization, ...(init.body !== undefined && { 'content-type': 'application/json' }) }
    const response = await fetch(adminUrl + path, { ...init, headers })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  const status = async (): Promise<StatusInfo> => (await control('/v1/status')) as StatusInfo
  const until: BenchServer['until'] = async (wanted, isThere, timeoutMs = UNTIL_TIMEOUT_MS) => {
    const deadlineMs = performance.now() + timeoutMs
    while (!isThere(await status())) {
      if (performance.now() > deadlineMs) throw new Error(`After ${timeoutMs} ms there is still not: ${wanted}.`)
      await delay(SAMPLE_INTERVAL_MS)
    }
  }
  const owned = stack.move()
  return {
    carpool,
    dataDir,
    status,
    deployBundle: async (name, code, limits = {}) => {
      const sourceMap = JSON.stringify({ version: 3, sources: [], names: [], mappings: '' })
      const body: DeployRequest = { code, sourceMap, limits }
      await control(`/v1/functions/${name}/revisions`, { method: 'POST', body: JSON.stringify(body) })
    },
    functions: async () => ((await control('/v1/functions')) as { functions: FunctionInfo[] }).functions,
    deleteFunction: async (name) => void (await control(`/v1/functions/${name}`, { method: 'DELETE' })),
    watch: (intervalMs = SAMPLE_INTERVAL_MS) => watchFleet({ adminUrl, token, serverPid: carpool.pid, intervalMs }),
    until,
    untilSettled: () =>
      until('a fleet at rest', ({ hosts }) => {
        const isAtRest = hosts.every(({ state }) => state === 'ready' || state === 'standby')
        return isAtRest && hosts.length === readHostProcesses(carpool.pid).length
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/** What a server says of itself to commands of its user. */
function readAnnouncement(folder: string): { readonly adminUrl: string; readonly token: string } {
  const file = readdirSync(folder).find((name) => name.endsWith('.json'))
  if (file === undefined) throw new Error('The server has announced nothing in its state folder.')
  return JSON.parse(readFileSync(join(folder, file), 'utf8')) as { adminUrl: string; token: string }
}
