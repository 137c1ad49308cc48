import type { InvocationRecord } from '@carpool/core'
import type { Writable } from 'node:stream'
import { renderTable, type Column } from './table.ts'
import { formatBytes, formatDuration } from './units.ts'

const REFUSED = 'refused'

/** What was measured in a host says nothing of a call that never came there. */
function ifRun(text: (record: InvocationRecord) => string): (record: InvocationRecord) => string {
  return (record) => (record.outcome === REFUSED ? '-' : text(record))
}

const COLUMNS: readonly Column<InvocationRecord>[] = [
  { title: 'TIME', text: ({ startedAtMs }) => new Date(startedAtMs).toISOString() },
  { title: 'ID', text: ({ id }) => id },
  { title: 'FUNCTION', text: ({ functionName }) => functionName },
  { title: 'OUTCOME', text: ({ outcome, error }) => (error === undefined ? outcome : `${outcome}: ${error}`) },
  { title: 'START', text: ifRun(({ start }) => start) },
  { title: 'STATUS', align: 'right', text: ({ status }) => String(status) },
  { title: 'WALL', align: 'right', text: ({ wallUs }) => formatDuration(wallUs) },
  { title: 'CPU', align: 'right', text: ifRun(({ cpuUs }) => formatDuration(cpuUs)) },
  { title: 'QUEUE', align: 'right', text: ({ queueUs }) => formatDuration(queueUs) },
  { title: 'INIT', align: 'right', text: ifRun(({ initUs }) => formatDuration(initUs)) },
  { title: 'PEAK', align: 'right', text: ifRun(({ memoryPeakKb }) => formatBytes(memoryPeakKb * 1024)) },
]

/** Records of invocations as a table. */
export function renderInvocations(records: readonly InvocationRecord[], stream: Writable): string {
  return renderTable(COLUMNS, records, stream)
}
