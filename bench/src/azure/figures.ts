import { callsThat, distributionOf, latencyMs, type Distribution } from '../lib/load/call-summary.ts'
import { cpuCores, servingHosts } from '../lib/watch/fleet-sample.ts'
import type { Replayed } from './replay.ts'
import { correlation, thinned, trailingMean, type Point } from './series.ts'

/** What a replay showed, with times in ms from its beginning. */
export interface ReplayFigures {
  /** Host processes that take calls. */
  readonly hosts: readonly Point[]
  /** CPU of all host processes, in cores. */
  readonly cores: readonly Point[]
  /** Calls in flight. */
  readonly concurrency: readonly Point[]
  /** Of the hosts with each of the others; undefined if one of the two never changes. */
  readonly correlations: { readonly withCpu: number | undefined; readonly withConcurrency: number | undefined }
  readonly good: Distribution
  readonly refused: number
  readonly failed: number
}

/** Hosts answer to what was, not to the moment: CPU and concurrency are set against them as means over so long. */
export const VIEW_MS = 5_000

/** @param durationMs until the last call is due: what is left to wait for then says nothing of scaling */
export function figuresOf({ load: { calls, beganMs }, samples }: Replayed, durationMs: number): ReplayFigures {
  const during = samples.filter(({ atMs }) => atMs >= beganMs && atMs <= beganMs + durationMs)
  const cores = cpuCores(during).map(({ atMs, value }) => ({ atMs: atMs - beganMs, value }))
  // The first sample has no CPU yet.
  const others = during.slice(1)
  const hosts = others.map((sample) => ({ atMs: sample.atMs - beganMs, value: servingHosts(sample).length }))
  const concurrency = others.map(({ atMs, inFlight }) => ({ atMs: atMs - beganMs, value: inFlight }))
  const withHosts = (points: readonly Point[]): number | undefined =>
    correlation(valuesOf(hosts), valuesOf(trailingMean(points, VIEW_MS)))
  return {
    hosts,
    cores,
    concurrency,
    correlations: { withCpu: withHosts(cores), withConcurrency: withHosts(concurrency) },
    good: distributionOf(callsThat('good', calls).map(latencyMs)),
    refused: callsThat('refused', calls).length,
    failed: callsThat('failed', calls).length,
  }
}

export function valuesOf(points: readonly Point[]): number[] {
  return points.map(({ value }) => value)
}

/** Of a series of steps the first point, those with another value than before, and the last. */
export function changesOnly(points: readonly Point[]): Point[] {
  return points.filter(({ value }, index) => index === points.length - 1 || value !== points[index - 1]?.value)
}

/** Few points, with few digits, for pictures and files. */
export function inShort(points: readonly Point[], count: number): Point[] {
  return thinned(points, count).map(({ atMs, value }) => ({ atMs: Math.round(atMs), value: Math.round(value * 1000) / 1000 }))
}
