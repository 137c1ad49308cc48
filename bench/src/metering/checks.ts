import { percent } from '../lib/quantities.ts'
import { median } from '../lib/statistics.ts'
import { atLeast, atMost, type Verdict } from '../lib/verdict.ts'
import type { AccuracyResult } from './accuracy.ts'
import { isolatesAccounted, processAccounted, processAccountedBySystem, type ConservationResult } from './conservation.ts'
import { besideRatio, mean, type NeighbourRun } from './neighbour.ts'
import { onRatio, type ThroughputRun } from './throughput.ts'

const SUM_LIMIT = 0.02
const SLEEPING_LIMIT_US = 1000
const CONSERVATION_LIMIT = 0.03
const NEIGHBOUR_LIMIT = 0.05
const THROUGHPUT_AIM = 0.95

export function checkAccuracy(results: readonly AccuracyResult[], sleepersUs: readonly number[]): Verdict[] {
  return [
    ...results.flatMap(({ cpuMs, outside, recordsSeconds, isolatesSeconds, threadsSeconds }) => [
      off(`${cpuMs} ms: sum of the records against the isolates' clocks`, recordsSeconds / isolatesSeconds, SUM_LIMIT),
      ...(threadsSeconds === undefined
        ? []
        : [
            off(
              `${cpuMs} ms: the isolates' clocks against their threads by the system`,
              isolatesSeconds / threadsSeconds,
              CONSERVATION_LIMIT,
            ),
          ]),
      atMost('demand', `${cpuMs} ms: records off by more than a tenth and 1 ms`, outside, 0, String),
    ]),
    atMost(
      'demand',
      'calls that sleep for 2 s: median CPU',
      median(sleepersUs),
      SLEEPING_LIMIT_US,
      (us) => `${Math.round(us)} µs`,
    ),
  ]
}

export function checkConservation(result: ConservationResult): Verdict[] {
  const bySystem = processAccountedBySystem(result)
  return [
    atMost('demand', 'mixed load: failed calls', result.load.failures, 0, String),
    off('ledger and named overheads against the process', processAccounted(result), CONSERVATION_LIMIT),
    ...(bySystem === undefined ? [] : checkBySystem(bySystem)),
    off("ledger, blanks and memory-watch against the isolates' clocks", isolatesAccounted(result), CONSERVATION_LIMIT),
  ]
}

/** What the isolates' threads take between entries is in no figure that stands here, so that too little may be just that. */
function checkBySystem(ratio: number): Verdict[] {
  const claim = "the same, with V8's helper threads as the system has them"
  return [
    atMost('demand', `${claim}: no more than the process`, ratio, 1 + CONSERVATION_LIMIT, percent),
    atLeast('aim', `${claim}: no less`, ratio, 1 - CONSERVATION_LIMIT, percent),
  ]
}

export function checkNeighbour(runs: readonly NeighbourRun[]): Verdict[] {
  return [
    off('CPU of a waiting call beside a burning function against alone, medians', besideRatio(runs, median), NEIGHBOUR_LIMIT),
    off('the same, means: what the bill goes by', besideRatio(runs, mean), NEIGHBOUR_LIMIT),
  ]
}

export function checkThroughput(runs: readonly ThroughputRun[]): Verdict[] {
  return [
    atLeast(
      'aim',
      'throughput with metering and ledger against before, median of the pairs',
      onRatio(runs),
      THROUGHPUT_AIM,
      (ratio) => ratio.toFixed(3),
    ),
  ]
}

/** A ratio that is to be near 1, to either side. */
function off(claim: string, ratio: number, limit: number): Verdict {
  return atMost('demand', `${claim} (${ratio.toFixed(3)}), off`, Math.abs(ratio - 1), limit, percent)
}
