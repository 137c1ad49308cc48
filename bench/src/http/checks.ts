import { times } from '../lib/quantities.ts'
import { atLeast, type Verdict } from '../lib/verdict.ts'
import { connectionsRatio, pairedRatio, runsOver, type Run } from './rounds.ts'
import { SERVER_NAMES, type ServerName } from './servers.ts'
import type { WorkloadName } from './workloads.ts'

/** The connections that the product is judged by first. */
export const USUAL_CONNECTIONS = 64
const MANY_CONNECTIONS = 1_000

const AIMS: ReadonlyArray<{
  readonly other: ServerName
  readonly title: string
  readonly connections: number
  readonly ratio: number
}> = [
  { other: 'fastify', title: 'Fastify', connections: USUAL_CONNECTIONS, ratio: 0.45 },
  { other: 'workerd', title: 'workerd', connections: USUAL_CONNECTIONS, ratio: 1.9 },
  { other: 'functions-framework', title: 'the Functions Framework', connections: USUAL_CONNECTIONS, ratio: 2 },
  { other: 'split', title: 'the smallest split server', connections: USUAL_CONNECTIONS, ratio: 0.7 },
  { other: 'split', title: 'the smallest split server', connections: 1, ratio: 0.7 },
]
const MANY_RATIO_AIM = 0.85

type Ratios = Partial<Record<ServerName, number>>

/** What was measured over one number of connections. */
export interface ConnectionsResult<R = Run> {
  readonly connections: number
  /** Carpool's rate against that of each other server. */
  readonly ratios: Ratios
  /** Carpool's rate against its own over the usual connections, where those were measured too. */
  readonly ownRatio?: number
  readonly runs: readonly R[]
}

type Rated = Pick<Run, 'round' | 'server' | 'connections' | 'requestsPerSecond'>

/** One result for each number of connections, the usual one first. */
export function resultsByConnections<R extends Rated>(runs: readonly R[]): Array<ConnectionsResult<R>> {
  const counts = [...new Set(runs.map(({ connections }) => connections))]
  return counts
    .toSorted((a, b) => Number(b === USUAL_CONNECTIONS) - Number(a === USUAL_CONNECTIONS))
    .map((connections) => {
      const own =
        connections === USUAL_CONNECTIONS ? undefined : connectionsRatio(runs, 'carpool', connections, USUAL_CONNECTIONS)
      const over = runsOver(runs, connections)
      return { connections, ratios: ratiosOf(over), ...(own !== undefined && { ownRatio: own }), runs: over }
    })
}

/** The aims are those of a hello; of other workloads ratios are only told. */
export function checkRatios(results: readonly ConnectionsResult<unknown>[], workload: WorkloadName): Verdict[] {
  if (workload !== 'hello') return []
  const resultOver = (wanted: number): ConnectionsResult<unknown> | undefined =>
    results.find(({ connections }) => connections === wanted)
  const verdicts = AIMS.flatMap(({ other, title, connections, ratio }) => {
    const measured = resultOver(connections)?.ratios[other]
    const where =
      connections === USUAL_CONNECTIONS ? '' : ` over ${connections === 1 ? 'one connection' : `${connections} connections`}`
    return measured === undefined
      ? []
      : [atLeast('aim', `Carpool against ${title}${where}, median of the ratios within the rounds`, measured, ratio, times)]
  })
  const ownRatio = resultOver(MANY_CONNECTIONS)?.ownRatio
  if (ownRatio === undefined) return verdicts
  const claim = `Carpool over 1,000 connections against itself over ${USUAL_CONNECTIONS}, median of the ratios within the rounds`
  return [...verdicts, atLeast('aim', claim, ownRatio, MANY_RATIO_AIM, times)]
}

function ratiosOf(runs: readonly Rated[]): Ratios {
  const others = SERVER_NAMES.filter((name) => name !== 'carpool')
  return Object.fromEntries(
    others.flatMap((name) => {
      const ratio = pairedRatio(runs, 'carpool', name)
      return ratio === undefined ? [] : [[name, ratio]]
    }),
  )
}
