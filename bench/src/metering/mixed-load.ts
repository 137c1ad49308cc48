import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { isOk, type Caller, type CallResult } from '../lib/caller.ts'
import type { CarpoolServer } from '../lib/carpool-server.ts'
import { OpenLoop } from '../lib/open-loop.ts'
import { WORK_FILE, workUrl, type WorkShape } from './work.ts'

const HELLO_FILE = fileURLToPath(new URL('../http/functions/hello.js', import.meta.url))
const JSON_FILE = fileURLToPath(new URL('json.js', import.meta.url))
const LINGERING_FILE = fileURLToPath(new URL('lingering.js', import.meta.url))

/** Fewer than functions, so that those that are called seldom find no isolate. */
export const MAX_ISOLATES = 8
const COLD_FUNCTIONS = 20

const SLEEP: WorkShape = { iterations: 0, parts: 2, waitMs: [200, 200] }
const COLD: WorkShape = { iterations: 100, parts: 1, waitMs: [0, 0] }

interface Stream {
  readonly title: string
  readonly callsPerSecond: number
  /** Where the call of that number goes, without the server's address. */
  readonly path: (call: number) => string
}

const STREAMS: readonly Stream[] = [
  { title: 'hello', callsPerSecond: 300, path: () => '/hello/' },
  { title: 'JSON work', callsPerSecond: 200, path: () => '/json/' },
  { title: 'sleeping for 200 ms', callsPerSecond: 100, path: () => workUrl('/sleeper/', SLEEP) },
  { title: 'timers after the answer', callsPerSecond: 10, path: () => '/lingering/' },
  { title: 'seldom called functions', callsPerSecond: 10, path: (call) => workUrl(`/cold-${call % COLD_FUNCTIONS}/`, COLD) },
]

/** Deploys the functions of the mixed load. */
export async function deployMixed(server: CarpoolServer): Promise<void> {
  await server.deploy(HELLO_FILE, 'hello')
  await server.deploy(JSON_FILE, 'json')
  await server.deploy(WORK_FILE, 'sleeper')
  await server.deploy(LINGERING_FILE, 'lingering')
  for (let index = 0; index < COLD_FUNCTIONS; index++) await server.deploy(WORK_FILE, `cold-${index}`)
}

export interface MixedLoadResult {
  readonly calls: number
  readonly failures: number
  readonly perStream: ReadonlyArray<{ readonly title: string; readonly calls: number }>
}

/** Calls all functions at fixed rates for a while. */
export async function runMixedLoad(server: CarpoolServer, caller: Caller, durationMs: number): Promise<MixedLoadResult> {
  const runs = STREAMS.map(({ title, callsPerSecond, path }) => {
    const results: CallResult[] = []
    let next = 0
    const loop = new OpenLoop(callsPerSecond, async () => {
      results.push(await caller.call(server.url + path(next++)))
    })
    return { title, results, loop }
  })
  for (const { loop } of runs) loop.start()
  await delay(durationMs)
  await Promise.all(runs.map(({ loop }) => loop.stop()))
  const results = runs.flatMap((run) => run.results)
  return {
    calls: results.length,
    failures: results.filter((result) => !isOk(result)).length,
    perStream: runs.map((run) => ({ title: run.title, calls: run.results.length })),
  }
}
