import { poissonArrivals } from '../lib/load/arrivals.ts'
import { seededRandom, seedOf } from '../lib/load/random.ts'
import { cpuMsOf, cpuShareOf, factorFor } from './cpu-split.ts'
import { durationAt } from './duration-curve.ts'
import type { SampledFunction } from './sample.ts'

export interface ReplayOptions {
  /** Minutes of the sample that are replayed, from the first on. */
  readonly minutes: number
  /** How much faster than it was: all times, those between calls and those of calls, are divided by it. */
  readonly scale: number
  /** CPU that all calls together are to take on average, in cores. */
  readonly cores: number
  readonly seed: number
}

export interface PlannedCall {
  readonly functionName: string
  /** In ms after the beginning of the replay. */
  readonly dueMs: number
  readonly cpuMs: number
  readonly waitMs: number
}

export interface ReplayPlan {
  /** In the order in which they are due. */
  readonly calls: readonly PlannedCall[]
  /** Functions that have any. */
  readonly functionNames: readonly string[]
  readonly durationMs: number
  /** Mean of what the calls take, in cores. */
  readonly cores: number
}

const MINUTE_MS = 60_000

/**
 * Draws every call of a replay: the same for the same sample and seed. @throws RangeError if the sample is shorter than the
 * minutes
 */
export function planReplay(sample: readonly SampledFunction[], { minutes, scale, cores, seed }: ReplayOptions): ReplayPlan {
  const known = Math.min(...sample.map(({ callsPerMinute }) => callsPerMinute.length))
  if (minutes > known) throw new RangeError(`The sample has ${known} minutes, not ${minutes}.`)
  const durationMs = (minutes * MINUTE_MS) / scale
  const drawn = sample.flatMap(({ name, callsPerMinute, durationsMs }) => {
    const random = seededRandom(seedOf(`${seed} calls of ${name}`))
    const share = cpuShareOf(name, seed)
    const arrivals = poissonArrivals(callsPerMinute.slice(0, minutes), MINUTE_MS / scale, random)
    return Array.from(arrivals, (dueMs) => ({ name, dueMs, share, durationMs: durationAt(durationsMs, random()) / scale }))
  })
  const factor = factorFor(drawn, cores * durationMs)
  const calls = drawn
    .map((call) => {
      const cpuMs = cpuMsOf(call, factor)
      return { functionName: call.name, dueMs: call.dueMs, cpuMs, waitMs: call.durationMs - cpuMs }
    })
    .toSorted((a, b) => a.dueMs - b.dueMs)
  return {
    calls,
    functionNames: [...new Set(drawn.map(({ name }) => name))],
    durationMs,
    cores: calls.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / durationMs,
  }
}
