import type { LogLevel, LogLine } from '@carpool/core'
import { styleText } from 'node:util'
import type { Writable } from 'node:stream'
import { visibleText } from './visible-text.ts'

const LEVEL_STYLES = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const satisfies Record<LogLevel, string>

/**
 * A log line for people; coloured if `stream` shows colours. A message of several lines is indented from the second one on, so that
 * nothing that a function writes looks like a line of another.
 */
export function renderLogLine(line: LogLine, stream: Writable): string {
  const level = styleText(LEVEL_STYLES[line.level] ?? 'cyan', line.level.padEnd(5), { stream })
  const message = visibleText(line.msg).replaceAll('\n', '\n    ')
  return `${styleText('gray', line.time, { stream })} ${level} ${line.function}: ${message}`
}
