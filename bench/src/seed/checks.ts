import { megabytes, seconds } from '../lib/quantities.ts'
import { atMost, type Verdict } from '../lib/verdict.ts'
import { middleOf, type Measurement } from './measurement.ts'
import type { WayKey } from './way.ts'

/** How much slower the slowest of ten calls may be than in a plain Node process. */
const SLOWEST_RATIO = 1.1
const MEMORY_RATIO = 1 / 3
export const FEW = 10
const MANY = 100

/**
 * What the seed experiment is to show, as far as it was measured.
 * @param measurements every turn: times are judged by the middle turn, anything else by the worst of Carpool's
 */
export function checkSeed(measurements: readonly Measurement[]): Verdict[] {
  const turnsOf = (way: WayKey, calls: number): Measurement[] =>
    measurements.filter((measurement) => measurement.way === way && measurement.calls === calls)
  const few = turnsOf('carpool', FEW)
  const many = turnsOf('carpool', MANY)
  const plain = turnsOf('plain-node', FEW)
  const perCall = turnsOf('process-per-call', FEW)
  return [
    ...(few.length > 0 ? [checkOneInstance(few)] : []),
    ...(many.length > 0 ? [checkFailures(many)] : []),
    ...(few.length > 0 && plain.length > 0 ? [checkSlowest(middleOf(few), middleOf(plain))] : []),
    ...(few.length > 0 && perCall.length > 0 ? [checkMemory(few, middleOf(perCall))] : []),
  ]
}

function checkOneInstance(turns: readonly Measurement[]): Verdict {
  const hosts = worst(turns, ({ functionProcesses }) => functionProcesses)
  const instances = worst(turns, (turn) => turn.instances.length)
  const failures = worst(turns, (turn) => turn.failures)
  return {
    kind: 'demand',
    claim: `${FEW} at once in Carpool ride in one host process and one instance`,
    isMet: hosts === 1 && instances === 1 && failures === 0,
    detail: `host processes: ${hosts}, instances: ${instances}, failed calls: ${failures}`,
  }
}

function checkFailures(turns: readonly Measurement[]): Verdict {
  const failures = worst(turns, (turn) => turn.failures)
  return atMost('demand', `failed calls of ${MANY} at once in Carpool`, failures, 0, String)
}

function checkSlowest(carpool: Measurement, plain: Measurement): Verdict {
  const claim = `slowest of ${FEW} in Carpool within 10 % of plain Node's ${seconds(plain.slowestMs)}`
  return atMost('demand', claim, carpool.slowestMs, plain.slowestMs * SLOWEST_RATIO, seconds)
}

function checkMemory(turns: readonly Measurement[], perCall: Measurement): Verdict {
  const peakBytes = worst(turns, ({ usage }) => usage.peakBytes)
  const allowedBytes = perCall.usage.peakBytes
  const claim = `peak memory at ${FEW} calls no more than a third of the ${megabytes(allowedBytes)} of a process per call`
  return atMost('demand', claim, peakBytes, allowedBytes * MEMORY_RATIO, megabytes)
}

function worst(turns: readonly Measurement[], value: (turn: Measurement) => number): number {
  return Math.max(...turns.map(value))
}
