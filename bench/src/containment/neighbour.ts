import { Caller } from '../lib/caller.ts'
import type { BenchServer } from '../lib/bench-server.ts'
import { evenArrivals } from '../lib/load/arrivals.ts'
import { callsThat, distributionOf, endLine, latencyMs } from '../lib/load/call-summary.ts'
import type { LoadOrder, LoadResult } from '../lib/load/load-order.ts'
import { milliseconds } from '../lib/quantities.ts'
import { median } from '../lib/statistics.ts'
import type { Column } from '../lib/table.ts'
import { atMost, type Verdict } from '../lib/verdict.ts'
import { demandOk } from '../metering/work.ts'
import { neighbourBundle } from './functions.ts'

export const NEIGHBOUR = 'neighbour'
const DEFAULT_CPU_MS = 5
const WARM_UP_CALLS = 60
const TRIAL_ITERATIONS = 3_000
const TRIAL_CALLS = 21
/** So many different answers: one that went to another call than its own shows. */
const NUMBERS = 997
/** What harm may do to a neighbour's p99 (issue 5): the larger of twice what it is alone, and 25 ms more. */
const P99 = { factor: 2, plusMs: 25 }

/** A function that does no harm, beside those that do. */
export interface Neighbour {
  /** Loop iterations that take 1 ms of CPU, with what a call takes besides. */
  readonly iterationsPerMs: number
  /** Calls at an even rate whose answers are checked. */
  order(load: NeighbourLoad): LoadOrder
}

export interface NeighbourLoad {
  readonly callsPerSecond: number
  readonly durationMs: number
  /** CPU of a call. Default: 5. */
  readonly cpuMs?: number
  /** How long a call waits before. Default: 0. */
  readonly waitMs?: number
}

/** Deploys it, and finds out how much it has to do. */
export async function deployNeighbour(server: BenchServer): Promise<Neighbour> {
  const { carpool } = server
  await server.deployBundle(NEIGHBOUR, neighbourBundle())
  const path = (waitMs: number, iterations: number, number: number): string =>
    `/${NEIGHBOUR}/?wait=${waitMs}&iterations=${iterations}&number=${number}`
  using caller = new Caller()
  const url = carpool.url + path(0, TRIAL_ITERATIONS, 1)
  demandOk(await caller.callInTurns(url, WARM_UP_CALLS, 2))
  demandOk(await caller.callInTurns(url, TRIAL_CALLS, 1))
  const records = await carpool.invocations({ functionName: NEIGHBOUR, limit: TRIAL_CALLS })
  const iterationsPerMs = (TRIAL_ITERATIONS * 1000) / median(records.map(({ cpuUs }) => cpuUs))
  const numbers = Array.from({ length: NUMBERS }, (_, number) => number)
  return {
    iterationsPerMs,
    order: ({ callsPerSecond, durationMs, cpuMs = DEFAULT_CPU_MS, waitMs = 0 }) => {
      const iterations = Math.round(cpuMs * iterationsPerMs)
      return {
        origin: carpool.url,
        paths: numbers.map((number) => path(waitMs, iterations, number)),
        bodies: numbers.map((number) => String(number * iterations)),
        load: { kind: 'open', dueMs: evenArrivals([{ callsPerSecond, durationMs }]) },
        openConnections: 2,
        takesPrecedence: true,
      }
    },
  }
}

/** What became of a neighbour's calls in one stretch of time. */
export interface NeighbourFigures {
  readonly calls: number
  /** Without an answer of the function. */
  readonly lost: number
  /** With an answer that is not the one to this call. */
  readonly wrong: number
  readonly ends: string
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
  /** The generator has precedence, so this is small or the figures mean nothing. */
  readonly latestStartMs: number
}

export function neighbourFigures({ calls, latestStartMs }: Pick<LoadResult, 'calls' | 'latestStartMs'>): NeighbourFigures {
  const { p50 = Number.NaN, p99 = Number.NaN, max = Number.NaN } = distributionOf(calls.map(latencyMs))
  const wrong = calls.filter(({ failure }) => failure === 'wrong answer').length
  return {
    calls: calls.length,
    lost: calls.length - callsThat('good', calls).length - wrong,
    wrong,
    ends: endLine(calls),
    p50Ms: p50,
    p99Ms: p99,
    maxMs: max,
    latestStartMs,
  }
}

/** The invariants of a neighbour. @param claim begins the text of each */
export function neighbourVerdicts(claim: string, alone: NeighbourFigures, beside: NeighbourFigures): Verdict[] {
  const limitMs = Math.max(P99.factor * alone.p99Ms, alone.p99Ms + P99.plusMs)
  return [
    atMost('demand', `${claim}: neighbour calls lost`, beside.lost, 0, String),
    atMost('demand', `${claim}: neighbour answers that are wrong`, beside.wrong, 0, String),
    atMost('aim', `${claim}: p99 of the neighbour`, beside.p99Ms, limitMs, milliseconds),
  ]
}

/** What became of its calls beside others, with what it is alone. */
export const BESIDE_COLUMNS: ReadonlyArray<Column<{ readonly alone: NeighbourFigures; readonly beside: NeighbourFigures }>> = [
  { title: 'calls', text: ({ beside }) => String(beside.calls) },
  { title: 'lost', text: ({ beside }) => String(beside.lost) },
  { title: 'wrong', text: ({ beside }) => String(beside.wrong) },
  { title: 'p99 alone', text: ({ alone }) => milliseconds(alone.p99Ms) },
  { title: 'p99', text: ({ beside }) => milliseconds(beside.p99Ms) },
  { title: 'slowest', text: ({ beside }) => milliseconds(beside.maxMs) },
  { title: 'latest start', text: ({ beside }) => milliseconds(beside.latestStartMs) },
  { title: 'answers', align: 'left', text: ({ beside }) => beside.ends },
]
