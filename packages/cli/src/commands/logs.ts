import type { LogLevel, LogLine } from '@carpool/core'
import type { Writable } from 'node:stream'
import { styleText } from 'node:util'
import type { CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { visibleText } from '../format.ts'
import { wholeNumber } from '../options.ts'

interface LogsOptions extends ConnectionOptions {
  readonly follow?: boolean
  readonly limit?: number
}

export const logs: CliCommand<LogsOptions> = {
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

const LEVEL_STYLES = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const satisfies Record<LogLevel, string>

/**
 * A log line for people; coloured if `stream` shows colours. A message of several lines is indented from the second one on, so
 * that nothing that a function writes looks like a line of another.
 */
export function renderLogLine(line: LogLine, stream: Writable): string {
  const level = styleText(LEVEL_STYLES[line.level] ?? 'cyan', line.level.padEnd(5), { stream })
  const message = visibleText(line.msg).replaceAll('\n', '\n    ')
  return `${styleText('gray', line.time, { stream })} ${level} ${line.function}: ${message}`
}
