import type { OffenderFigures } from '../../containment/fate.ts'
import type { NeighbourFigures } from '../../containment/neighbour.ts'
import type { Level } from '../../containment/process-level.ts'
import { countedBy, lower, never, told, verdictsOf, type Claim, type Figure } from '../claim.ts'
import { callsIn, inWords, ms, range, sum, whole } from '../words.ts'

interface Results {
  readonly killers: ReadonlyArray<{
    readonly title: string
    readonly offenders: readonly OffenderFigures[]
    readonly harmed: number
    readonly beside: NeighbourFigures
  }>
  readonly runaways: ReadonlyArray<{
    readonly leastCpuMs: number
    readonly mostCpuMs: number
    readonly alone: NeighbourFigures
    readonly beside: NeighbourFigures
  }>
  readonly 'host-loss': {
    readonly kinds: ReadonlyArray<{
      readonly method: string
      readonly calls: number
      readonly failed: number
      readonly slowestAnswerMs: number
    }>
  }
  readonly soak: { readonly before: Level; readonly after: Level; readonly good: { readonly ends: string } }
}

export const CONTAINMENT_CLAIMS: readonly Claim[] = [
  {
    name: 'killers',
    bench: 'containment',
    part: 'killers',
    verdicts: /^killers/,
    read: ({ results }) => {
      const runs = (results as Results).killers
      const alone = runs.filter(({ offenders }) => offenders.length === 1)
      const calls = sum(alone, ({ beside }) => beside.calls)
      const spoiled = sum(runs, ({ beside }) => beside.lost + beside.wrong)
      const disabled = alone.filter(({ offenders: [offender] }) => offender?.state === 'disabled')
      const others = alone.filter(({ offenders: [offender] }) => offender?.state !== 'disabled')
      const clean = others.filter(({ harmed, offenders: [offender] }) => harmed === 0 && offender?.isClean)
      const harmed = disabled.map((run) => run.harmed)
      const fates = [
        ...(disabled.length > 0
          ? [`${inWords(disabled.length)} are disabled after ${range(harmed, String)} harmed hosts each`]
          : []),
        ...(clean.length > 0 ? [`${inWords(clean.length)} ended each time`] : []),
        ...(clean.length < others.length ? [`${inWords(others.length - clean.length)} neither`] : []),
      ]
      return {
        text: `of ${whole(calls)} calls of the neighbour ${inWords(spoiled)} lost or wrong; ${fates.join(', ')}`,
        figures: {
          'lost or wrong': never(spoiled),
          'neither disabled nor ended': lower(others.length - clean.length, { noise: 0 }),
          'calls of the neighbour': told(calls),
        },
      }
    },
  },
  {
    name: 'runaways',
    bench: 'containment',
    part: 'runaways',
    verdicts: /^runaways/,
    read: (document) => {
      const rounds = (document.results as Results).runaways
      const calls = sum(rounds, ({ beside }) => beside.calls)
      const lost = sum(rounds, ({ beside }) => beside.lost + beside.wrong)
      const p99 = (which: 'alone' | 'beside'): number[] => rounds.map((round) => round[which].p99Ms)
      const cpuMs = rounds.flatMap(({ leastCpuMs, mostCpuMs }) => [leastCpuMs, mostCpuMs])
      const otherwise = countedBy(document, /did not end with/)
      const others = otherwise === 0 ? '' : ` (${whole(otherwise)} otherwise)`
      return {
        text: `each ended at ${range(cpuMs, ms)}${others}; of ${whole(calls)} calls of a neighbour ${inWords(lost)} lost, p99 ${range(p99('alone'), ms)} alone, ${range(p99('beside'), ms)} beside them`,
        figures: {
          'ended otherwise': never(otherwise),
          'most CPU, ms': lower(Math.max(...cpuMs), { noise: 0.1 }),
          'calls lost': never(lost),
          'worst p99 beside, ms': lower(Math.max(...p99('beside')), { noise: 0.5 }),
        },
      }
    },
  },
  {
    name: 'host-loss',
    bench: 'containment',
    part: 'host-loss',
    verdicts: /^host-loss/,
    read: ({ results }) => {
      const { kinds } = (results as Results)['host-loss']
      const of = (method: string): Results['host-loss']['kinds'][number] => {
        const found = kinds.find((kind) => kind.method === method)
        if (found === undefined) throw new RangeError(`There are no calls with ${method}.`)
        return found
      }
      const [get, post] = [of('GET'), of('POST')]
      const within = `told within ${ms(Math.max(get.slowestAnswerMs, post.slowestAnswerMs))}`
      return {
        text: `GET: ${whole(get.calls - get.failed)} of ${whole(get.calls)} answered; POST: ${whole(post.failed)} of ${whole(post.calls)} lost, ${within}`,
        figures: {
          'GET failed': never(get.failed),
          'POST lost, of 1,000': lower((1000 * post.failed) / post.calls, { noise: 0.5, noiseBy: 2 }),
          'told within, ms': lower(Math.max(get.slowestAnswerMs, post.slowestAnswerMs), { noise: 0.5, noiseBy: 10 }),
        },
      }
    },
  },
  {
    name: 'soak',
    bench: 'containment',
    part: 'soak',
    verdicts: /^soak/,
    read: (document) => {
      const { before, after, good } = (document.results as Results).soak
      const calls = callsIn(good.ends)
      const [failed, refused] = [
        countedBy(document, /good calls that failed/),
        countedBy(document, /good calls that were refused/),
      ]
      const isMet = (pattern: RegExp): boolean => verdictsOf(document, pattern).every((verdict) => verdict.isMet)
      const levels = [before, after].map(({ server }) => server.residentBytes / 1e6)
      const isBack = isMet(/^soak: (descriptors|threads|processes)/)
      const agree = isMet(/^soak: (answered calls without|records that)/)
      return {
        text: `${whole(calls)} good calls, ${inWords(failed)} failed${refused === 0 ? '' : `, ${whole(refused)} refused`}; descriptors, threads and processes ${isBack ? 'are' : 'are not'} back where they were, memory of the server ${levels.map(Math.round).join(' to ')} MB; ledger and clients ${agree ? 'agree' : 'do not agree'}`,
        figures: {
          'good calls that failed': never(failed),
          'refused': lower(refused, { noise: 0 }),
          ...heldFigures(before, after),
          'good calls': told(calls),
        },
      }
    },
  },
]

function heldFigures(before: Level, after: Level): Record<string, Figure> {
  return {
    'memory of the server after, MB': lower(after.server.residentBytes / 1e6),
    'descriptors more': lower(after.server.descriptors - before.server.descriptors, { noise: 0, noiseBy: 2 }),
    'threads more': lower(after.server.threads - before.server.threads, { noise: 0 }),
  }
}
