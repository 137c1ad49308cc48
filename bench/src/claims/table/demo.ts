import { sumUsage } from '@carpool/billing'
import { renderTable } from '../../lib/table.ts'
import { BILL_COLUMNS, billsOf } from '../../seed/bill.ts'
import { FEW } from '../../seed/checks.ts'
import { README_COLUMNS } from '../../seed/columns.ts'
import { middleOf, type Measurement } from '../../seed/measurement.ts'
import type { WayKey } from '../../seed/way.ts'
import { lower, never, told, type BenchDocument, type Claim, type Figure } from '../claim.ts'

/** The most that Carpool's processes may take together at ten calls, in MB. */
const MOST_MB = 332

/** The rows of the demo's table: of several turns the middle one. */
function rowsOf({ results }: BenchDocument): Measurement[] {
  const { measurements } = results as { readonly measurements: readonly Measurement[] }
  const groups = Map.groupBy(measurements, ({ calls, way }) => `${calls} ${way}`)
  return [...groups.values()].map(middleOf)
}

function carpoolFew(document: BenchDocument): Measurement {
  const found = rowsOf(document).find(({ way, calls }) => way === 'carpool' && calls === FEW)
  if (found === undefined) throw new RangeError(`There is no row of Carpool with ${FEW} calls.`)
  return found
}

function figuresOf({ way, calls, usage, slowestMs, instances, functionProcesses }: Measurement): Array<[string, Figure]> {
  const key = (what: string): string => `${calls} calls, ${way}: ${what}`
  const isOurs = way === ('carpool' satisfies WayKey)
  const figure = (value: number, noise: number): Figure => (isOurs ? lower(value, { noise }) : told(value))
  return [
    [key('slowest, ms'), figure(slowestMs, 0.2)],
    [
      key('peak memory, MB'),
      isOurs && calls === FEW
        ? lower(usage.peakBytes / 1e6, { noise: 0.1, atMost: MOST_MB })
        : figure(usage.peakBytes / 1e6, 0.1),
    ],
    ...(isOurs
      ? ([
          [key('instances'), lower(instances.length, { noise: 0, atMost: 1 })],
          [key('host processes with code'), lower(functionProcesses, { noise: 0, atMost: 1 })],
        ] satisfies Array<[string, Figure]>)
      : []),
  ]
}

/** What each card charges for, in a few words. */
const CHARGED: Readonly<Record<string, string>> = {
  'lambda-2018': 'wall time in steps of 100 ms',
  'lambda': 'wall time in steps of 1 ms',
  'cloud-run': 'time of shared instances',
  'active-cpu': 'CPU, and memory of shared instances',
  'workers': 'CPU',
}
const [, ...AMOUNTS] = BILL_COLUMNS
const BILL_COLUMNS_IN_WORDS: typeof BILL_COLUMNS = [
  { title: 'rate card', align: 'left', text: ({ card }) => `\`${card}\`: ${CHARGED[card] ?? 'see its file'}` },
  ...AMOUNTS,
]

const block = (text: string): string => `\n\n${text}\n\n`

export const DEMO_CLAIMS: readonly Claim[] = [
  {
    name: 'demo',
    bench: 'seed',
    verdicts: /./,
    quick: {
      verdicts: /ride in one host|peak memory|failed calls/,
      figures: [
        `${FEW} calls, carpool: peak memory, MB`,
        `${FEW} calls, carpool: instances`,
        `${FEW} calls, carpool: host processes with code`,
      ],
    },
    read: (document) => {
      const rows = rowsOf(document)
      return { text: block(renderTable(README_COLUMNS, rows, 'markdown')), figures: Object.fromEntries(rows.flatMap(figuresOf)) }
    },
  },
  {
    name: 'demo-usage',
    bench: 'seed',
    quick: { figures: ['failed'] },
    read: (document) => {
      const { recorded = [], failures } = carpoolFew(document)
      const { cpuUs, initCpuUs, backgroundCpuUs, wallUs } = sumUsage(recorded)
      const cpuSeconds = (cpuUs + initCpuUs + backgroundCpuUs) / 1e6
      return {
        text: `${(wallUs / 1e6).toFixed(1)} s of wall time, ${cpuSeconds.toFixed(1)} s of CPU`,
        figures: { 'failed': never(failures), 'wall time, s': told(wallUs / 1e6), 'CPU, s': lower(cpuSeconds, { noise: 0.25 }) },
      }
    },
  },
  {
    name: 'demo-bill',
    bench: 'seed',
    read: (document) => {
      const bills = billsOf(carpoolFew(document))
      return {
        text: block(renderTable(BILL_COLUMNS_IN_WORDS, bills, 'markdown')),
        figures: Object.fromEntries(bills.map(({ card, total }) => [`${card}, $ a million`, told(total * 1e6)])),
      }
    },
  },
]
