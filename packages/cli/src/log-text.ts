import type { LogLevel, LogLine } from '@carpool/core'
import { styleText } from 'node:util'
import type { Writable } from 'node:stream'

const LEVEL_STYLES = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const satisfies Record<LogLevel, string>

/** A log line for people; coloured if `stream` shows colours. */
export function renderLogLine(line: LogLine, stream: Writable): string {
  const level = styleText(LEVEL_STYLES[line.level] ?? 'cyan', line.level.padEnd(5), { stream })
  return `${styleText('gray', line.time, { stream })} ${level} ${line.function}: ${line.msg}`
}
