import type { InvocationRecord } from '@carpool/core'
import type { Writable } from 'node:stream'
import type { CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, formatBytes, formatDuration, renderTable } from '../format.ts'
import { addSinceOption, type SinceOption, wholeNumber } from '../options.ts'

interface InvocationsOptions extends ConnectionOptions, SinceOption {
  readonly slow?: boolean
  readonly failed?: boolean
  readonly limit: number
}

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 1000

export const invocations: CliCommand<InvocationsOptions> = {
  define(command) {
    command
      .option('--slow', 'the longest first, by the time without queue and init, instead of the newest')
      .option('--failed', 'only those that failed or were refused')
      .option('-n, --limit <count>', 'most invocations to print', wholeNumber(1, MAX_LIMIT), DEFAULT_LIMIT)
    addSinceOption(command, 'only those that began since then')
    addConnectionOptions(command)
  },

  async run({ args: [functionName], options: { slow, failed, limit, since, ...options }, io, output }) {
    const records = await connect(options, { io, output }).invocations({
      limit,
      ...(functionName !== undefined && { functionName }),
      ...(since !== undefined && { sinceMs: since }),
      ...(failed && { failed }),
      ...(slow && { slow }),
    })
    if (records.length > 0 || output.json) output.answer(records, renderInvocations(records, io.stdout))
    else output.note('There are no such invocations.')
  },
}

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
