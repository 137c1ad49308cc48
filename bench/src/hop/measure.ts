import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startCarpool, type CarpoolServer } from '../lib/carpool-server.ts'
import { runClosedLoop } from '../lib/closed-loop.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import type { TakenProfile } from './profile-types.ts'
import type { ProcessName } from './stages.ts'
import { figuresBetween, readBoth, type ThreadFigures } from './totals.ts'

const HELLO_FILE = fileURLToPath(new URL('../http/functions/hello.js', import.meta.url))
/** One host, so that all calls take the same way, and none in reserve, which would be profiled too. */
const FLAGS = ['--max-hosts', '1', '--standby-hosts', '0']
const LOOK_MS = 50
const PROFILE_TIMEOUT_MS = 60_000

export interface LoadShape {
  readonly connections: number
  readonly durationMs: number
}

/** One round of load without a profiler. */
export interface HopRound {
  readonly requestsPerSecond: number
  readonly threads: readonly ThreadFigures[]
}

/** A server with a warm hello in its host. */
export interface HopServer extends AsyncDisposable {
  load(shape: LoadShape): Promise<HopRound>
}

/** Starts the server of a checkout as it is by default, and warms it up. */
export async function startHopServer(checkout: string, warmUp: LoadShape): Promise<HopServer> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await temporaryFolder())
  const server = stack.use(await startCarpool({ dataDir: join(folder.path, 'data'), checkout, flags: FLAGS }))
  const { url } = await server.deploy(HELLO_FILE, 'hello')
  await runClosedLoop({ url, ...warmUp })
  const pids = { server: server.pid, host: await hostPid(server) }
  const kept = stack.move()
  return {
    load: async (shape) => {
      const before = readBoth(pids)
      const { requests, requestsPerSecond } = await runClosedLoop({ url, ...shape })
      return { requestsPerSecond, threads: figuresBetween(before, readBoth(pids), requests) }
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

/** Profiles the main threads of a server and its host under load, with the sandbox off: the host needs one more descriptor, and the inspector. */
export async function takeProfiles(
  checkout: string,
  warmUp: LoadShape,
  shape: LoadShape,
): Promise<Record<ProcessName, TakenProfile>> {
  await using stack = new AsyncDisposableStack()
  const { path: folder } = stack.use(await temporaryFolder())
  const agent = new URL('profile-server.mjs', import.meta.url)
  agent.searchParams.set('folder', folder)
  const options = {
    dataDir: join(folder, 'data'),
    checkout,
    flags: [...FLAGS, '--sandbox', 'off'],
    nodeFlags: [`--import=${agent.href}`],
  }
  const server = stack.use(await startCarpool(options))
  const { url } = await server.deploy(HELLO_FILE, 'hello')
  await runClosedLoop({ url, ...warmUp })
  process.kill(server.pid, 'SIGUSR2')
  await untilThere(join(folder, 'started.json'))
  await runClosedLoop({ url, ...shape })
  process.kill(server.pid, 'SIGUSR2')
  const file = join(folder, 'profiles.json')
  await untilThere(file)
  const taken = JSON.parse(readFileSync(file, 'utf8')) as { server: TakenProfile; hosts: TakenProfile[] }
  const [host, ...others] = taken.hosts
  if (host === undefined || others.length > 0) throw new Error(`${taken.hosts.length} hosts were profiled, not one.`)
  return { server: taken.server, host }
}

/** @throws Error if there is not exactly one host */
async function hostPid(server: CarpoolServer): Promise<number> {
  const [host, ...others] = await server.hosts()
  if (host === undefined || others.length > 0) throw new Error(`There are ${others.length + 1} hosts, not one.`)
  return host.pid
}

async function untilThere(file: string): Promise<void> {
  const deadlineMs = performance.now() + PROFILE_TIMEOUT_MS
  while (!existsSync(file)) {
    if (performance.now() > deadlineMs) throw new Error('The server does not tell of its profile.')
    await delay(LOOK_MS)
  }
}
