import { seededRandom, seedOf } from '../lib/load/random.ts'

/** The smallest share of its duration that a function works, before all shares are scaled. */
const LEAST_SHARE = 0.01
/** A call that takes minutes waits for something: what it works beyond this counts as waiting. */
export const MOST_CPU_MS = 250

/**
 * How much of its duration a function works rather than waits. The data set does not say, so it is drawn for each function,
 * evenly on a logarithmic scale from 1 % to 100 %, and independently of how often and how long it runs: CPU and concurrency
 * must not be the same curve.
 */
export function cpuShareOf(name: string, seed: number): number {
  return LEAST_SHARE ** seededRandom(seedOf(`${seed} ${name}`))()
}

export interface Work {
  readonly durationMs: number
  readonly share: number
}

/** CPU of a call, in ms. @param factor common to all calls */
export function cpuMsOf({ durationMs, share }: Work, factor: number): number {
  return Math.min(MOST_CPU_MS, durationMs * Math.min(1, share * factor))
}

const STEPS = 60

/** The common factor with which all calls together take so much CPU, or as near to it as the limits let them come. */
export function factorFor(calls: readonly Work[], wantedCpuMs: number): number {
  const total = (factor: number): number => calls.reduce((sum, call) => sum + cpuMsOf(call, factor), 0)
  let [low, high] = [0, 1 / LEAST_SHARE]
  for (let step = 0; step < STEPS; step++) {
    const middle = (low + high) / 2
    if (total(middle) < wantedCpuMs) low = middle
    else high = middle
  }
  return high
}
