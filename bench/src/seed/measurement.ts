import type { UsageRow } from '@carpool/core'
import { Caller, failureLines, isOk } from '../lib/caller.ts'
import { watchProcesses } from '../lib/process-watch.ts'
import { percentile } from '../lib/statistics.ts'
import type { TreeUsage } from '../lib/tree-account.ts'
import { parseSeedAnswer } from './answer.ts'
import type { Way, WayKey } from './way.ts'

/** One way under one number of calls at once. */
export interface Measurement {
  readonly way: WayKey
  readonly title: string
  readonly calls: number
  readonly failures: number
  readonly failureLines: readonly string[]
  /** Each instance that answered, with the smallest and the largest of the invocation ids it gave. */
  readonly instances: ReadonlyArray<{ readonly id: string; readonly first: number; readonly last: number }>
  readonly p50Ms: number
  readonly slowestMs: number
  /** All processes that ran the function's code at any time. */
  readonly functionProcesses: number
  /** Processes that were kept started to take over, and ran no function. */
  readonly standbyProcesses: number
  /** What these took at their peaks; it is part of the whole. */
  readonly standbyBytes: number
  /** From the first call to the last answer: what it took to start the server is not in it. */
  readonly usage: TreeUsage
  /** What the way itself recorded of the calls, by function. */
  readonly recorded?: readonly UsageRow[]
}

/** Starts a way from nothing, sends calls at once, and stops it. */
export async function measureWay(way: Way, calls: number): Promise<Measurement> {
  await using running = await way.start()
  const watch = await watchProcesses([running.rootPid])
  using caller = new Caller()
  const results = await caller.callAtOnce(running.url, calls)
  const usage = await watch.stop()
  const { serving, standby } = await running.splitProcesses(usage)
  const recorded = await running.recorded?.()
  // A 2xx that is not the function's answer is a failure as well.
  const judged = results.map((result) =>
    isOk(result) && parseSeedAnswer(result.body) === undefined
      ? { ...result, error: `not the answer: ${result.body.slice(0, 200)}` }
      : result,
  )
  const answers = judged.filter(isOk).flatMap(({ body }) => parseSeedAnswer(body) ?? [])
  const durations = results.map(({ durationMs }) => durationMs)
  return {
    way: way.key,
    title: way.title,
    calls,
    failures: calls - answers.length,
    failureLines: failureLines(judged),
    instances: [...Map.groupBy(answers, ({ instanceId }) => instanceId)].map(([id, of]) => {
      const counts = of.map(({ invocationId }) => invocationId)
      return { id, first: Math.min(...counts), last: Math.max(...counts) }
    }),
    p50Ms: percentile(durations, 50),
    slowestMs: Math.max(...durations),
    functionProcesses: serving.length,
    standbyProcesses: standby.length,
    standbyBytes: standby.reduce((total, { peakBytes }) => total + peakBytes, 0),
    usage,
    ...(recorded !== undefined && { recorded }),
  }
}

/** The one of several measurements whose slowest call is the median: figures that were measured together stay together. */
export function middleOf(measurements: readonly Measurement[]): Measurement {
  const sorted = measurements.toSorted((a, b) => a.slowestMs - b.slowestMs)
  const middle = sorted[Math.ceil(sorted.length / 2) - 1]
  if (middle === undefined) throw new RangeError('There are no measurements.')
  return middle
}
