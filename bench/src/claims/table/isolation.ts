import { lower, never, told, type BenchDocument, type Claim } from '../claim.ts'
import type { Steadiness } from '../../lib/steadiness.ts'
import { ms, whole } from '../words.ts'

interface Results {
  readonly rows: ReadonlyArray<{ readonly verdict: string }>
  /** Names of checks that failed, but for the neighbour's latency. */
  readonly wrong: readonly string[]
  /** Attacks that slow the neighbour beyond the aim. */
  readonly slowed: number
  readonly steadiness: Steadiness
  /** In Markdown. */
  readonly table: string
}

function countsOf({ results }: BenchDocument): { run: number; skipped: number; wrong: number; slowed: number } {
  const { rows, wrong, slowed } = results as Results
  const skipped = rows.filter(({ verdict }) => verdict === 'skipped').length
  return { run: rows.length - skipped, skipped, wrong: wrong.length, slowed }
}

function checks(count: number): string {
  return count === 1 ? 'one check' : `${whole(count)} checks`
}

/** What README, SECURITY.md and docs/isolation.md say of the attacks. */
export const ISOLATION_CLAIMS: readonly Claim[] = [
  {
    name: 'attacks',
    bench: 'isolation',
    read: (document) => {
      const { run, skipped } = countsOf(document)
      return { text: `${run} attacks`, figures: { attacks: told(run), skipped: told(skipped) } }
    },
  },
  {
    name: 'isolation',
    bench: 'isolation',
    verdicts: /^isolation/,
    read: (document) => {
      const { wrong, slowed } = countsOf(document)
      const verdict = wrong === 0 ? 'no answer wrong, nothing leaks' : `${checks(wrong)} ${wrong === 1 ? 'fails' : 'fail'}`
      return {
        text: `${verdict}; in ${slowed} of them the neighbour's p99 is above the aim of twice what it is alone, or 25 ms more`,
        figures: { 'checks that fail': never(wrong), 'neighbour slowed': lower(slowed, { noise: 0.2, noiseBy: 5 }) },
      }
    },
  },
  {
    // What slows down even this comes of the attacks and their clients on the same machine.
    name: 'isolation-process',
    bench: 'isolation-process',
    read: (document) => {
      const { slowed } = countsOf(document)
      return { text: `in ${slowed}`, figures: { 'process slowed': told(slowed) } }
    },
  },
  {
    // What this takes beyond 5 ms is due to the machine.
    name: 'isolation-machine',
    bench: 'isolation',
    read: ({ results }) => {
      const { usualMs, p95Ms, p99Ms } = (results as Results).steadiness
      const slowest = `${ms(p95Ms)} or more in one of 20 rounds, and ${ms(p99Ms)} or more in one of 100`
      return { text: `${ms(usualMs)} in the median, ${slowest}`, figures: { 'p99 of 5 ms of work': told(p99Ms) } }
    },
  },
  {
    name: 'isolation-summary',
    bench: 'isolation',
    read: (document) => {
      const { run, skipped, wrong, slowed } = countsOf(document)
      const verdict =
        wrong + slowed === 0
          ? 'All were as they should be.'
          : `**Not as they should be**: ${checks(wrong)}, and the neighbour's p99 beside ${slowed} of the attacks.`
      return { text: `${run} cases, ${skipped} skipped. ${verdict}`, figures: {} }
    },
  },
  {
    name: 'isolation-table',
    bench: 'isolation',
    read: ({ results }) => ({ text: `\n\n${(results as Results).table}\n\n`, figures: {} }),
  },
]
