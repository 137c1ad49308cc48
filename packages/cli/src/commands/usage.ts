import { sumUsage } from '@carpool/billing'
import { execUs, type UsageGroup, type UsageRow, type UsageTotals } from '@carpool/core'
import type { Writable } from 'node:stream'
import type { CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, formatBytes, formatDuration, formatShare, renderTable } from '../format.ts'
import { addGroupOption, addSinceOption, type GroupOption, type SinceOption } from '../options.ts'

export const usage: CliCommand<ConnectionOptions & GroupOption & SinceOption> = {
  define(command) {
    addGroupOption(command, 'what a line stands for (default: function)')
    addSinceOption(command, 'only what was used since then')
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nTotals are kept by the hour: the hour in which --since lies counts as a whole.' +
        '\nWAITING is the part of the time of calls, without queue and init, in which they used no CPU.',
    )
  },

  async run({ options: { by = 'function', since, ...options }, io, output }) {
    const rows = await connect(options, { io, output }).usage({ by, ...(since !== undefined && { sinceMs: since }) })
    const total = sumUsage(rows)
    if (rows.length > 0 || output.json) output.answer({ rows, total }, renderUsage(by, rows, total, io.stdout))
    else output.note('Nothing was used in that time.')
  },
}

/** Time in which invocations were under way in user code that used no CPU, in µs. */
export function waitedUs(totals: UsageTotals): number {
  return Math.max(0, execUs(totals) - totals.cpuUs)
}

const COLUMNS: readonly Column<UsageTotals>[] = [
  { title: 'CALLS', align: 'right', text: ({ invocations }) => String(invocations) },
  { title: 'FAILED', align: 'right', text: ({ failures }) => String(failures) },
  { title: 'REFUSED', align: 'right', text: ({ refused }) => String(refused) },
  { title: 'COLD', align: 'right', text: ({ coldStarts }) => String(coldStarts) },
  { title: 'CPU', align: 'right', text: ({ cpuUs }) => formatDuration(cpuUs) },
  { title: 'INIT CPU', align: 'right', text: ({ initCpuUs }) => formatDuration(initCpuUs) },
  { title: 'BACKGROUND', align: 'right', text: ({ backgroundCpuUs }) => formatDuration(backgroundCpuUs) },
  { title: 'WALL', align: 'right', text: ({ wallUs }) => formatDuration(wallUs) },
  { title: 'WAITING', align: 'right', text: (totals) => formatShare(waitedUs(totals), execUs(totals)) },
  { title: 'PEAK', align: 'right', text: ({ memoryPeakKb }) => formatBytes(memoryPeakKb * 1024) },
  { title: 'IN', align: 'right', text: ({ bytesIn }) => formatBytes(bytesIn) },
  { title: 'OUT', align: 'right', text: ({ bytesOut }) => formatBytes(bytesOut) },
  { title: 'EGRESS IN', align: 'right', text: ({ egressBytesIn }) => formatBytes(egressBytesIn) },
  { title: 'EGRESS OUT', align: 'right', text: ({ egressBytesOut }) => formatBytes(egressBytesOut) },
  { title: 'OPEN', align: 'right', text: ({ openUs }) => formatDuration(openUs) },
  { title: 'SOCKETS', align: 'right', text: ({ sockets }) => String(sockets) },
  { title: 'SOCKET TIME', align: 'right', text: ({ socketUs }) => formatDuration(socketUs) },
]

/** Usage as a table with a line for each row and one for all of them. */
export function renderUsage(by: UsageGroup, rows: readonly UsageRow[], total: UsageTotals, stream: Writable): string {
  const columns: Column<UsageRow>[] = [{ title: by.toUpperCase(), text: ({ key }) => key }, ...COLUMNS]
  return renderTable(columns, [...rows, { ...total, key: 'total' }], stream)
}
