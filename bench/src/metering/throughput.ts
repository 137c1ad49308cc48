import { loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startCarpool } from '../lib/carpool-server.ts'
import { runClosedLoop, type LoadResult } from '../lib/closed-loop.ts'
import { SELDOM_MS, watchProcesses } from '../lib/process-watch.ts'
import { progress } from '../lib/report.ts'
import { median } from '../lib/statistics.ts'
import { temporaryFolder } from '../lib/temporary-folder.ts'
import type { TreeUsage } from '../lib/tree-account.ts'
import { installEarlierVersion } from './earlier-version.ts'

const HELLO_FILE = fileURLToPath(new URL('../http/functions/hello.js', import.meta.url))
const CONNECTIONS = 64
const WARM_UP_MS = 4000

/** `off` is a version from before there was metering. */
export const VERSIONS = ['off', 'on'] as const
export type Version = (typeof VERSIONS)[number]

/** One version under load in one round. */
export interface ThroughputRun extends LoadResult {
  readonly round: number
  readonly version: Version
  readonly usage: TreeUsage
}

export interface ThroughputOptions {
  /** What `off` is. */
  readonly commit: string
  readonly rounds: number
  readonly durationMs: number
}

/** Loads both versions in turns, each with a server that stays; who is first alternates. */
export async function measureThroughput({ commit, rounds, durationMs }: ThroughputOptions): Promise<ThroughputRun[]> {
  await using stack = new AsyncDisposableStack()
  const folder = stack.use(await temporaryFolder())
  progress(`throughput: installing ${commit}`)
  const checkout = await installEarlierVersion(commit, folder.path)
  await untilQuiet()
  const targets = []
  for (const version of VERSIONS) {
    const dataDir = join(folder.path, version)
    const server = stack.use(await startCarpool(version === 'off' ? { dataDir, checkout } : { dataDir }))
    const { url } = await server.deploy(HELLO_FILE, 'hello')
    targets.push({ version, url, pid: server.pid })
  }
  for (const { version, url } of targets) {
    progress(`throughput: warming up ${version}`)
    await runClosedLoop({ url, connections: CONNECTIONS, durationMs: WARM_UP_MS })
  }
  const runs: ThroughputRun[] = []
  for (let round = 0; round < rounds; round++) {
    for (const { version, url, pid } of round % 2 === 0 ? targets : targets.toReversed()) {
      const watch = await watchProcesses([pid], SELDOM_MS)
      const load = await runClosedLoop({ url, connections: CONNECTIONS, durationMs })
      runs.push({ round, version, ...load, usage: await watch.stop() })
      progress(`throughput: round ${round + 1}, ${version}: ${Math.round(load.requestsPerSecond)} req/s`)
    }
  }
  return runs
}

/** The median of on against off within the rounds. */
export function onRatio(runs: readonly Pick<ThroughputRun, 'version' | 'requestsPerSecond'>[]): number {
  const off = ratesOf(runs, 'off')
  return median(ratesOf(runs, 'on').map((rate, round) => rate / (off[round] ?? Number.NaN)))
}

export function ratesOf(runs: readonly Pick<ThroughputRun, 'version' | 'requestsPerSecond'>[], version: Version): number[] {
  return runs.filter((run) => run.version === version).map(({ requestsPerSecond }) => requestsPerSecond)
}

const QUIET_LOAD = 0.7
const QUIET_LOOK_MS = 5000
const QUIET_WAIT_MS = 600_000

/** Waits until the machine has little else to do, or for ten minutes. */
async function untilQuiet(): Promise<void> {
  const startMs = performance.now()
  for (let said = false; (loadavg()[0] ?? 0) > QUIET_LOAD; said = true) {
    if (performance.now() - startMs > QUIET_WAIT_MS) return progress('  the machine does not come to rest')
    if (!said) progress(`  waiting for a load average below ${QUIET_LOAD}`)
    await delay(QUIET_LOOK_MS)
  }
}
