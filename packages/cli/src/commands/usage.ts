import { sumUsage } from '@carpool/billing'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addGroupOption, type GroupOption } from '../group-option.ts'
import { addSinceOption, type SinceOption } from '../since-option.ts'
import { renderUsage } from '../usage-text.ts'
import type { Verb } from '../verb.ts'

export const usage: Verb<ConnectionOptions & GroupOption & SinceOption> = {
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
