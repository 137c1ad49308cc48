import { countedBy, higher, lower, never, told, type Claim } from '../claim.ts'
import { callsIn, inWords, megabytes, ms, percent, range, ratio, seconds, sum, whole } from '../words.ts'

interface Distribution {
  readonly p50: number
  readonly p99: number
}

interface Results {
  readonly burn: { readonly rises: ReadonlyArray<{ readonly secondHostMs: number | null }>; readonly ratio: number }
  readonly overload: {
    readonly overloads: ReadonlyArray<{
      readonly goodShare: number
      readonly refusedMs: Distribution
      readonly afterDeadline: number
    }>
  }
  readonly upstream: {
    readonly stretches: ReadonlyArray<{ readonly mostInFlight: number; readonly hostCores: number }>
  }
  readonly utilization: { readonly perFunctionBytes: number; readonly steps: ReadonlyArray<{ readonly dropped: number }> }
  readonly shutdown: ReadonlyArray<{ readonly before: number; readonly after: number }>
  readonly flood: ReadonlyArray<{
    readonly title: string
    readonly shape: string
    readonly aloneP99Ms: number
    readonly quietP99Ms: number
    readonly quietEnds: string
    readonly floodEnds: string
  }>
}

/** As the bench has it: what is not there was not seen within its time. */
const NEVER_MS = 30_000
const QUIET_PER_SECOND = 10

export const SCALING_CLAIMS: readonly Claim[] = [
  {
    name: 'burn',
    bench: 'scaling',
    part: 'burn',
    verdicts: /^burn/,
    read: ({ results }) => {
      const { rises, ratio: two } = (results as Results).burn
      const slowestMs = Math.max(...rises.map(({ secondHostMs }) => secondHostMs ?? NEVER_MS))
      return {
        text: `a second host answers ${seconds(slowestMs)} after the first is full; two make ${ratio(two)} the calls of one`,
        figures: { 'second host, ms': lower(slowestMs, { noise: 0.3 }), 'two against one': higher(two, { noise: 0.06 }) },
      }
    },
  },
  {
    name: 'overload',
    bench: 'scaling',
    part: 'overload',
    verdicts: /^overload/,
    read: ({ results }) => {
      const { overloads } = (results as Results).overload
      const shares = overloads.map(({ goodShare }) => goodShare)
      const refusedMs = overloads.map(({ refusedMs: { p50 } }) => p50)
      const late = sum(overloads, ({ afterDeadline }) => afterDeadline)
      return {
        text: `${range(shares, (share) => percent(share, 0))} of the peak is answered, ${inWords(late)} late; the rest gets 503 after ${range(refusedMs, ms)} (median)`,
        figures: {
          'least of the peak, %': higher(100 * Math.min(...shares), { noise: 0.04 }),
          'late': never(late),
          'slowest median refusal, ms': lower(Math.max(...refusedMs), { noise: 0.5 }),
        },
      }
    },
  },
  {
    name: 'upstream',
    bench: 'scaling',
    part: 'upstream',
    verdicts: /^upstream/,
    read: (document) => {
      const { stretches } = (document.results as Results).upstream
      const inFlight = Math.max(...stretches.map(({ mostInFlight }) => mostInFlight))
      const cores = stretches.at(-1)?.hostCores ?? Number.NaN
      const refused = countedBy(document, /^upstream: refused/)
      const added = countedBy(document, /^upstream: hosts/) - 1
      return {
        text: `${inWords(refused)} refused, ${added === 0 ? 'no host' : inWords(added)} added: ${whole(inFlight)} calls in flight on ${cores.toFixed(2)} of a core`,
        figures: {
          'refused': never(refused),
          'hosts added': never(added),
          'in flight': told(inFlight),
          'cores': lower(cores, { noise: 0.25, noiseBy: 0.03 }),
        },
      }
    },
  },
  {
    name: 'utilization',
    bench: 'scaling',
    part: 'utilization',
    verdicts: /^utilization/,
    read: ({ results }) => {
      const { perFunctionBytes, steps } = (results as Results).utilization
      const dropped = sum(steps, (step) => step.dropped)
      return {
        text: `${inWords(dropped)} dropped; a function adds ${megabytes(perFunctionBytes)}`,
        figures: { 'dropped': never(dropped), 'a function, MB': lower(perFunctionBytes / 1e6, { noise: 0.1 }) },
      }
    },
  },
  {
    name: 'shutdown',
    bench: 'scaling',
    part: 'shutdown',
    verdicts: /^shutdown/,
    read: (document) => {
      const calls = sum((document.results as Results).shutdown, ({ before, after }) => before + after)
      const failed = countedBy(document, /^shutdown: failed/)
      return {
        text: `of ${whole(calls)} calls ${inWords(failed)} failed`,
        figures: { failed: never(failed), calls: told(calls) },
      }
    },
  },
  {
    name: 'flood',
    bench: 'scaling',
    part: 'flood',
    verdicts: /^flood/,
    read: ({ results }) => {
      const run = (results as Results).flood.find(({ title, shape }) => title === 'hello' && shape.endsWith('500 connections'))
      if (run === undefined) throw new RangeError('There is no flood of hello over 500 connections.')
      const { aloneP99Ms, quietP99Ms, quietEnds, floodEnds } = run
      const runSeconds = callsIn(quietEnds) / QUIET_PER_SECOND
      const rate = Math.round(callsIn(floodEnds) / runSeconds / 1000) * 1000
      // The bench's own limit.
      const aimMs = 2 * aloneP99Ms + 10
      const aim = quietP99Ms > aimMs ? `, where ${ms(aimMs)} is the aim` : ''
      return {
        text: `a p99 of ${ms(quietP99Ms)} beside a flood of ${whole(rate)} calls/s of another over 500 connections${aim}`,
        figures: { 'quiet p99, ms': lower(quietP99Ms, { noise: 0.3 }), 'flood, calls/s': told(rate) },
      }
    },
  },
]
