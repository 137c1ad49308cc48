import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startCarpool, type CarpoolServer } from '../lib/carpool-server.ts'
import { runClosedLoop } from '../lib/closed-loop.ts'
import { progress } from '../lib/report.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import { giveOwnCore } from './own-core.ts'
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

/**
 * Profiles the main thread of a server under load, and then that of its host, each with a core to itself. The sandbox is off: the
 * host needs one more descriptor, and the inspector.
 */
export async function takeProfiles(
  checkout: string,
  warmUp: LoadShape,
  shape: LoadShape,
): Promise<Record<ProcessName, TakenProfile>> {
  await using stack = new AsyncDisposableStack()
  const { path: folder } = stack.use(await temporaryFolder())
  const agent = new URL('profile-server.mjs', import.meta.url)
  agent.searchParams.set('folder', folder)
  const server = stack.use(
    await startCarpool({
      dataDir: join(folder, 'data'),
      checkout,
      flags: [...FLAGS, '--sandbox', 'off'],
      nodeFlags: [`--import=${agent.href}`],
    }),
  )
  const { url } = await server.deploy(HELLO_FILE, 'hello')
  await runClosedLoop({ url, ...warmUp })
  const pids = { server: server.pid, host: await hostPid(server) }
  const profileOne = async (name: ProcessName): Promise<TakenAll> => {
    process.kill(server.pid, 'SIGUSR2')
    await taken(join(folder, 'started.json'))
    // From here on there is the thread that takes the samples.
    using ownCore = giveOwnCore(pids[name], Object.values(pids))
    if (ownCore === undefined) progress('  without a core to itself')
    await runClosedLoop({ url, ...shape })
    process.kill(server.pid, 'SIGUSR2')
    return (await taken(join(folder, 'profiles.json'))) as TakenAll
  }
  const ofServer = await profileOne('server')
  const { hosts } = await profileOne('host')
  const [host, ...others] = hosts
  if (host === undefined || others.length > 0) throw new Error(`${hosts.length} hosts were profiled, not one.`)
  return { server: ofServer.server, host }
}

/** What the server leaves in its folder. */
interface TakenAll {
  readonly server: TakenProfile
  readonly hosts: readonly TakenProfile[]
}

/** @throws Error if there is not exactly one host */
async function hostPid(server: CarpoolServer): Promise<number> {
  const [host, ...others] = await server.hosts()
  if (host === undefined || others.length > 0) throw new Error(`There are ${others.length + 1} hosts, not one.`)
  return host.pid
}

/** Waits for a file, and takes it away. */
async function taken(file: string): Promise<unknown> {
  const deadlineMs = performance.now() + PROFILE_TIMEOUT_MS
  while (!existsSync(file)) {
    if (performance.now() > deadlineMs) throw new Error('The server does not tell of its profile.')
    await delay(LOOK_MS)
  }
  const content: unknown = JSON.parse(readFileSync(file, 'utf8'))
  rmSync(file)
  return content
}
