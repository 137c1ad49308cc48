import { setTimeout as delay } from 'node:timers/promises'
import { Caller, isOk, type CallResult } from '../lib/caller.ts'
import { startCarpool, type CarpoolServer } from '../lib/carpool-server.ts'
import { OpenLoop } from '../lib/open-loop.ts'
import { progress } from '../lib/report.ts'
import { median } from '../lib/statistics.ts'
import { demandOk, iterationsPerMs, recorded, warmUp, WORK_FILE, workUrl } from './work.ts'

const CALLS_PER_SECOND = 50
const WAIT_MS = 20
const WAITING_CPU_MS = 1
const BURNING_CPU_MS = 200
const BURNING_AT_ONCE = 2

export const SITUATIONS = ['alone', 'beside'] as const
export type Situation = (typeof SITUATIONS)[number]

/** The calls of the waiting function in one situation. */
export interface NeighbourRun {
  readonly round: number
  readonly situation: Situation
  /** CPU time of each call, in µs. */
  readonly cpuUs: readonly number[]
  /** Calls of the burning function meanwhile. */
  readonly burned: number
  /** How late the latest call was sent, in ms: what the bench itself was short of. */
  readonly latestStartMs: number
}

/** @param rounds in each, the waiting function runs once alone and once beside the burning one; who is first alternates */
export async function measureNeighbour(dataDir: string, rounds: number, durationMs: number): Promise<NeighbourRun[]> {
  await using server = await startCarpool({ dataDir })
  using caller = new Caller()
  const waiting = await server.deploy(WORK_FILE, 'waiting')
  const burning = await server.deploy(WORK_FILE, 'burning')
  for (const { url } of [waiting, burning]) await warmUp(caller, url)
  const perMs = await iterationsPerMs(server, caller, burning.url)
  const waitingUrl = workUrl(waiting.url, {
    iterations: Math.round(perMs * WAITING_CPU_MS),
    parts: 2,
    waitMs: [WAIT_MS, WAIT_MS],
  })
  const burningUrl = workUrl(burning.url, { iterations: Math.round(perMs * BURNING_CPU_MS), parts: 1, waitMs: [0, 0] })
  const runs: NeighbourRun[] = []
  for (let round = 0; round < rounds; round++) {
    for (const situation of round % 2 === 0 ? SITUATIONS : SITUATIONS.toReversed()) {
      progress(`neighbour: round ${round + 1} of ${rounds}, ${situation}`)
      const burner = situation === 'beside' ? keepCalling(caller, burningUrl) : undefined
      const run = await runWaiting(server, caller, waitingUrl, durationMs)
      runs.push({ round, situation, burned: (await burner?.stop()) ?? 0, ...run })
    }
  }
  return runs
}

async function runWaiting(
  server: CarpoolServer,
  caller: Caller,
  url: string,
  durationMs: number,
): Promise<Pick<NeighbourRun, 'cpuUs' | 'latestStartMs'>> {
  const results: CallResult[] = []
  const loop = new OpenLoop(CALLS_PER_SECOND, async () => {
    results.push(await caller.call(url))
  })
  const records = await recorded(server, 'waiting', 1000, async () => {
    loop.start()
    await delay(durationMs)
    await loop.stop()
    return results
  })
  return { cpuUs: records.map(({ cpuUs }) => cpuUs), latestStartMs: loop.latestStartMs }
}

interface Burner {
  /** Resolves with the number of calls once the last is answered. */
  stop(): Promise<number>
}

/** Keeps two calls under way until it is stopped. */
function keepCalling(caller: Caller, url: string): Burner {
  const stopping = new AbortController()
  const results: CallResult[] = []
  const callOn = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const result = await caller.call(url)
      results.push(result)
      if (!isOk(result)) return
    }
  }
  const ended = Promise.all(Array.from({ length: BURNING_AT_ONCE }, callOn))
  return {
    stop: async () => {
      stopping.abort()
      await ended
      demandOk(results)
      return results.length
    },
  }
}

/** How much more a call takes beside the other than alone: the median of the ratios within the rounds. */
export function besideRatio(runs: readonly NeighbourRun[], perCall: (cpuUs: readonly number[]) => number): number {
  const of = (situation: Situation): number[] =>
    runs.filter((run) => run.situation === situation).map(({ cpuUs }) => perCall(cpuUs))
  const alone = of('alone')
  return median(of('beside').map((us, round) => us / (alone[round] ?? Number.NaN)))
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
