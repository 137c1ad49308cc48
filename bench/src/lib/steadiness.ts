import { setTimeout as pause } from 'node:timers/promises'
import { median, percentile } from './statistics.ts'

/** How long the same work takes where nothing else runs: where a machine is shared, others may take its cores unseen. */
export interface Steadiness {
  /** In the median, in ms. */
  readonly usualMs: number
  readonly p95Ms: number
  readonly p99Ms: number
}

const ROUND_MS = 5
const PAUSE_MS = 15
const TRIAL_TURNS = 1_000_000
/** The first ones end before the loop is compiled. */
const TRIALS = 10

/** Does the same 5 ms of work again and again, about 50 times a second. */
export async function measureSteadiness(forMs: number): Promise<Steadiness> {
  const trials = Array.from({ length: TRIALS }, () => timeOf(TRIAL_TURNS))
  const turns = Math.max(1, Math.round((TRIAL_TURNS * ROUND_MS) / Math.min(...trials)))
  const tookMs: number[] = []
  const untilMs = performance.now() + forMs
  do {
    tookMs.push(timeOf(turns))
    await pause(PAUSE_MS)
  } while (performance.now() < untilMs)
  return { usualMs: median(tookMs), p95Ms: percentile(tookMs, 95), p99Ms: percentile(tookMs, 99) }
}

let last = 0

function timeOf(turns: number): number {
  const startedMs = performance.now()
  let work = last
  for (let turn = turns; turn > 0; turn--) work = (work * 31 + turn) | 0
  // Kept, or the loop could be left out.
  last = work
  return performance.now() - startedMs
}
