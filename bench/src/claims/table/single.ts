import type { Sample, StartKind } from '../../cold/samples.ts'
import { median } from '../../lib/statistics.ts'
import { countedBy, higher, lower, missedAim, never, told, type Claim } from '../claim.ts'
import { inWords, range, ratio, seconds, short, whole } from '../words.ts'

/** Claims of the benches that have one each. */

/** Beyond it something was added to each record. */
const LEDGER_BYTES_LIMIT = 110

interface SleepResults {
  readonly rounds: ReadonlyArray<{
    readonly hosts: number
    readonly failures: number
    readonly allAnsweredMs: number
    readonly usage: { readonly peakBytes: number }
  }>
}

interface ColdResults {
  readonly samples: readonly Sample[]
}

interface DeployResults {
  readonly calls: { readonly count: number }
  readonly deployments: readonly unknown[]
}

interface LedgerResults {
  readonly count: number
  readonly bytes: number
  readonly questions: ReadonlyArray<{ readonly command: string; readonly commandMs: readonly number[] }>
}

interface HttpResults {
  readonly ratios: { readonly fastify: number; readonly workerd: number }
}

export const SINGLE_CLAIMS: readonly Claim[] = [
  {
    name: 'sleep',
    bench: 'sleep',
    verdicts: /./,
    quick: { verdicts: /failed calls|host processes/, figures: ['host processes', 'failed calls', 'peak memory, MB'] },
    read: ({ results }) => {
      const { rounds } = results as SleepResults
      const worst = (value: (round: SleepResults['rounds'][number]) => number): number => Math.max(...rounds.map(value))
      const hosts = worst((round) => round.hosts)
      const failures = worst((round) => round.failures)
      const slowestMs = worst(({ allAnsweredMs }) => allAnsweredMs)
      return {
        text: `${inWords(hosts)} host process${hosts === 1 ? '' : 'es'}, ${inWords(failures)} failed, all answered within ${seconds(slowestMs)}`,
        figures: {
          'host processes': lower(hosts, { noise: 0, atMost: 1 }),
          'failed calls': never(failures),
          'all answered, ms': lower(slowestMs),
          'peak memory, MB': lower(worst(({ usage }) => usage.peakBytes) / 1e6, { noise: 0.1 }),
        },
      }
    },
  },
  {
    name: 'cold',
    bench: 'cold',
    verdicts: /./,
    read: ({ results }) => {
      const { samples } = results as ColdResults
      const of = (wanted: StartKind): number =>
        median(samples.filter(({ kind }) => kind === wanted).map(({ durationMs }) => durationMs))
      const over = (kind: StartKind): number => of(kind) - of('warm')
      const text = (kind: StartKind): string => `+${short(over(kind))} ms`
      return {
        text: `isolate evicted ${text('evicted')}, never called ${text('never-called')}, new host process ${text('host-cold')}`,
        figures: {
          'evicted over warm, ms': lower(over('evicted'), { noise: 0.25 }),
          'never called over warm, ms': lower(over('never-called'), { noise: 0.25 }),
          'new host over warm, ms': lower(over('host-cold'), { noise: 0.25 }),
        },
      }
    },
  },
  {
    name: 'deploy',
    bench: 'deploy',
    verdicts: /./,
    quick: { verdicts: /./, figures: ['failed', 'mixed', 'stale'] },
    read: (document) => {
      const { calls, deployments } = document.results as DeployResults
      const [failed, mixed, stale] = [/^failed/, /mix/, /had been replaced/].map((pattern) => countedBy(document, pattern))
      const [failedCount = 0, mixedCount = 0, staleCount = 0] = [failed, mixed, stale]
      return {
        text: `of ${whole(calls.count)} calls ${inWords(failedCount)} failed, ${inWords(mixedCount)} mixed, ${inWords(staleCount)} answered by a replaced revision`,
        figures: {
          failed: never(failedCount),
          mixed: never(mixedCount),
          stale: never(staleCount),
          deploys: told(deployments.length),
          calls: told(calls.count),
        },
      }
    },
  },
  {
    name: 'ledger',
    bench: 'ledger',
    verdicts: /./,
    quick: { figures: ['bytes a record'] },
    read: ({ results }) => {
      const { count, bytes, questions } = results as LedgerResults
      const usageMs = questions
        .filter(({ command }) => command.startsWith('carpool usage'))
        .map(({ commandMs }) => median(commandMs))
      return {
        text: `${Math.round(bytes / count)} bytes each on disk, \`carpool usage\` in ${range(usageMs, seconds)}`,
        figures: {
          'bytes a record': lower(bytes / count, { noise: 0.05, atMost: LEDGER_BYTES_LIMIT }),
          'slowest usage, ms': lower(Math.max(...usageMs), { noise: 0.25 }),
          'records': told(count),
        },
      }
    },
  },
  {
    name: 'http',
    bench: 'http',
    verdicts: /./,
    read: (document) => {
      const { fastify, workerd } = (document.results as HttpResults).ratios
      return {
        text: `${ratio(fastify)} Fastify without isolation${missedAim(document, /Fastify/)}, ${ratio(workerd)} workerd${missedAim(document, /workerd/)}`,
        figures: { 'against Fastify': higher(fastify, { noise: 0.05 }), 'against workerd': higher(workerd, { noise: 0.1 }) },
      }
    },
  },
  {
    name: 'records',
    bench: 'records',
    verdicts: /./,
    quick: { verdicts: /./, figures: ['failed checks'] },
    read: ({ results }) => {
      const { calls, failed } = results as { readonly calls: number; readonly failed: number }
      const verdict = failed === 0 ? 'each has exactly one record, that says how it ended' : `${whole(failed)} checks fail`
      return { text: `${whole(calls)} calls of all kinds: ${verdict}`, figures: { 'failed checks': never(failed) } }
    },
  },
]
