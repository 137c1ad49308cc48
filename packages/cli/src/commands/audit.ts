import type { AuditEntry } from '@carpool/core'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { wholeNumber } from '../options.ts'
import { type Column, renderTable, visibleText } from '../format.ts'
import type { CliCommand } from '../command.ts'

interface AuditOptions extends ConnectionOptions {
  readonly limit?: number
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'TIME', text: ({ time }) => time },
  { title: 'TOKEN', text: ({ tokenId }) => tokenId ?? '-' },
  { title: 'OWNER', text: ({ owner }) => owner ?? '-' },
  { title: 'ACTION', text: ({ action }) => action },
  { title: 'SUBJECT', text: ({ subject }) => subject ?? '-' },
  { title: 'RESULT', text: ({ result }) => result },
  { title: 'FROM', text: ({ remoteAddress }) => remoteAddress },
  { title: 'NOTE', text: ({ note }) => visibleText(note ?? '') },
]

export const audit: CliCommand<AuditOptions> = {
  define(command) {
    command.option('-n, --limit <count>', 'how many of the latest entries to print (default: 50)', wholeNumber(0, 1_000))
    addConnectionOptions(command)
    command.addHelpText('after', '\nNeeds an admin token. The server keeps more in audit.ndjson in its data folder.')
  },

  async run({ options: { limit, ...options }, io, output }) {
    const page = await connect(options, { io, output }).audit(limit)
    if (page.entries.length > 0 || output.json) output.answer(page, renderTable(COLUMNS, page.entries, io.stdout))
    else output.note('Nothing was changed yet, and nobody was refused.')
    if (page.lostEntries > 0) output.warn(`${page.lostEntries} entries could not be written since the server started.`)
  },
}
