import { cpuSeconds, megabytes, seconds } from '../lib/quantities.ts'
import type { Column } from '../lib/table.ts'
import type { Measurement } from './measurement.ts'

export const COLUMNS: ReadonlyArray<Column<Measurement>> = [
  { title: 'calls', text: ({ calls }) => String(calls) },
  { title: 'way', align: 'left', text: ({ title }) => title },
  { title: 'instance', align: 'left', text: ({ instances }) => instanceText(instances) },
  { title: 'instances', text: ({ instances }) => String(instances.length) },
  { title: 'invocation', text: ({ instances }) => countText(instances) },
  { title: 'failed', text: ({ failures }) => String(failures) },
  { title: 'p50', text: ({ p50Ms }) => seconds(p50Ms) },
  { title: 'slowest', text: ({ slowestMs }) => seconds(slowestMs) },
  { title: 'processes', text: ({ usage }) => String(usage.peakProcesses) },
  { title: 'with code', text: ({ functionProcesses }) => String(functionProcesses) },
  { title: 'standby', text: ({ standbyProcesses }) => String(standbyProcesses) },
  { title: 'peak memory', text: ({ usage }) => megabytes(usage.peakBytes) },
  {
    title: 'of it standby',
    text: ({ standbyProcesses, standbyBytes }) => (standbyProcesses === 0 ? '-' : megabytes(standbyBytes)),
  },
  { title: 'CPU', text: ({ usage }) => cpuSeconds(usage.cpuSeconds) },
]

function instanceText(instances: Measurement['instances']): string {
  const [first, ...others] = instances.map(({ id }) => id.slice(0, 8))
  if (first === undefined) return '-'
  return others.length === 0 ? first : `${first} +${others.length}`
}

/** The invocation ids that the instances gave: 1-10 from one that took ten calls, 1 from ten that took one each. */
function countText(instances: Measurement['instances']): string {
  if (instances.length === 0) return '-'
  const first = Math.min(...instances.map((instance) => instance.first))
  const last = Math.max(...instances.map((instance) => instance.last))
  return first === last ? String(first) : `${first}-${last}`
}

/** Those that a reader of the whole needs: the others are for looking into one run. */
export const README_COLUMNS = COLUMNS.filter(({ title }) => !['instance', 'invocation', 'failed'].includes(title))
