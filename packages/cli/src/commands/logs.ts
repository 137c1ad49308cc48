import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { renderLogLine } from '../log-text.ts'
import { wholeNumber } from '../option-parsers.ts'
import type { Verb } from '../verb.ts'

interface LogsOptions extends ConnectionOptions {
  readonly follow?: boolean
  readonly limit?: number
}

export const logs: Verb<LogsOptions> = {
  jsonHelp: 'print one JSON array on stdout; with --follow one JSON document per line, as they come',

  define(command) {
    command.option('-f, --follow', 'go on with what is logged from now on, until it is stopped')
    command.option('-n, --limit <count>', 'how many of the latest lines to print', wholeNumber(0, 10_000))
    addConnectionOptions(command)
  },

  async run({ args: [functionName], options: { follow, limit, ...options }, io, output }) {
    const lines = connect(options, { io, output }).logs({ functionName, limit, follow })
    if (output.json && !follow) {
      output.answer(await Array.fromAsync(lines), '')
      return
    }
    for await (const line of lines) output.line(line, renderLogLine(line, io.stdout))
  },
}
