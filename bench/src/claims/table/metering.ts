import { median } from '../../lib/statistics.ts'
import type { AccuracyResult } from '../../metering/accuracy.ts'
import { besideRatio, mean, type NeighbourRun } from '../../metering/neighbour.ts'
import { onRatio, type ThroughputRun } from '../../metering/throughput.ts'
import { countedBy, higher, lower, missedAim, never, type Claim } from '../claim.ts'
import { inWords, percent, ratio, signed, sum, whole } from '../words.ts'

interface Results {
  readonly accuracy: { readonly loads: readonly AccuracyResult[] }
  readonly neighbour: readonly NeighbourRun[]
  readonly throughput: readonly ThroughputRun[]
}

export const METERING_CLAIMS: readonly Claim[] = [
  {
    name: 'accuracy',
    bench: 'metering',
    part: 'accuracy',
    verdicts: /^\d+ ms: |sleep for/,
    read: (document) => {
      const { loads } = (document.results as Results).accuracy
      const off = Math.max(...loads.map(({ recordsSeconds, isolatesSeconds }) => Math.abs(recordsSeconds / isolatesSeconds - 1)))
      const records = sum(loads, ({ calls }) => calls)
      const outside = countedBy(document, /records off by/)
      return {
        text: `sums within ${percent(off)} of the isolates' clocks, ${inWords(outside)} of ${whole(records)} records off by 10 % or 1 ms`,
        figures: { 'sums off, %': lower(100 * off, { noiseBy: 1 }), 'records off': never(outside) },
      }
    },
  },
  {
    name: 'neighbour-bill',
    bench: 'metering',
    part: 'neighbour',
    verdicts: /beside a burning|what the bill goes by/,
    read: ({ results }) => {
      const { neighbour } = results as Results
      const [medians, means] = [besideRatio(neighbour, median) - 1, besideRatio(neighbour, mean) - 1]
      return {
        text: `medians ${signed(medians)}, means ${signed(means)}`,
        figures: {
          'medians, %': lower(100 * Math.abs(medians), { noiseBy: 1.5 }),
          'means, %': lower(100 * Math.abs(means), { noiseBy: 1.5 }),
        },
      }
    },
  },
  {
    name: 'metering-cost',
    bench: 'metering',
    part: 'throughput',
    verdicts: /^throughput/,
    read: (document) => {
      const on = onRatio((document.results as Results).throughput)
      return {
        text: `${ratio(on)}${missedAim(document, /^throughput/)}`,
        figures: { 'with against without': higher(on, { noise: 0.05 }) },
      }
    },
  },
]
