import { median } from '../../lib/statistics.ts'
import { higher, lower, missedAim, type Claim } from '../claim.ts'
import { megabytes, ms, percent, ratio, whole } from '../words.ts'

/** Claims of what streams. */

interface StreamsResults {
  readonly workloads: ReadonlyArray<{
    readonly workload: string
    readonly server: string
    readonly ratio: number
    readonly memory: Readonly<Partial<Record<'server' | 'host', { readonly growthBytes: number }>>>
  }>
}

interface EventsResults {
  readonly rounds: ReadonlyArray<{
    readonly server: string
    readonly p50Ms: number
    readonly besideIdleP50Ms: number
    readonly serverBytesPerClient: number
    readonly hostBytesPerClient: number
    readonly cpuAtRest: number
    readonly cpuAlone: number
  }>
}

function kilobytes(bytes: number): string {
  return `${whole(bytes / 1024)} KiB`
}

/** Median over what Carpool did. */
function ofCarpool<T extends { readonly server: string }>(rounds: readonly T[], value: (round: T) => number): number {
  return median(rounds.filter(({ server }) => server === 'carpool').map(value))
}

export const STREAMING_CLAIMS: readonly Claim[] = [
  {
    name: 'streams',
    bench: 'streams',
    verdicts: /./,
    read: (document) => {
      const { workloads } = document.results as StreamsResults
      const own = workloads.filter(({ server }) => server === 'carpool')
      const rateOf = (name: string): number => own.find(({ workload }) => workload === name)?.ratio ?? Number.NaN
      const growthBytes = Math.max(...own.flatMap(({ memory }) => Object.values(memory).map((course) => course.growthBytes)))
      const told = (name: string): string => `${ratio(rateOf(name))}${missedAim(document, new RegExp(`^${name}, rate`))}`
      return {
        text:
          `passed on ${told('pass')}, from a fetch ${told('fetch')}, changed in the isolate ${told('transform')}, ` +
          `only read ${told('upload')}, only written ${told('download')}; memory of a process grows by at most ${megabytes(growthBytes)}`,
        figures: {
          'passed on': higher(rateOf('pass'), { noise: 0.25 }),
          'from a fetch': higher(rateOf('fetch'), { noise: 0.25 }),
          'changed': higher(rateOf('transform'), { noise: 0.25 }),
          'read': higher(rateOf('upload'), { noise: 0.25 }),
          'written': higher(rateOf('download'), { noise: 0.25 }),
          'growth, MB': lower(growthBytes / 1e6, { noise: 0.25, noiseBy: 10 }),
        },
      }
    },
  },
  {
    name: 'events',
    bench: 'events',
    verdicts: /./,
    read: (document) => {
      const { rounds } = document.results as EventsResults
      const of = (value: (round: EventsResults['rounds'][number]) => number): number => ofCarpool(rounds, value)
      const p50Ms = of((round) => round.p50Ms)
      const besideMs = of((round) => round.besideIdleP50Ms)
      const serverBytes = of((round) => round.serverBytesPerClient)
      const hostBytes = of((round) => round.hostBytesPerClient)
      const cpu = of(({ cpuAtRest, cpuAlone }) => Math.max(0, cpuAtRest - cpuAlone))
      const aim = missedAim(document, /CPU of a core/)
      return {
        text:
          `at its client after ${ms(p50Ms)} (median), ${ms(besideMs)} beside the idle ones; each of those takes ` +
          `${kilobytes(serverBytes)} of the server and ${kilobytes(hostBytes)} of its host, all together ${percent(cpu)} of a core${aim}`,
        figures: {
          'p50, ms': lower(p50Ms, { noise: 0.25 }),
          'p50 beside idle clients, ms': lower(besideMs, { noise: 0.25 }),
          'server for a client, KiB': lower(serverBytes / 1024),
          'host for a client, KiB': lower(hostBytes / 1024),
          'CPU at rest, %': lower(cpu * 100, { noiseBy: 0.5 }),
        },
      }
    },
  },
]
