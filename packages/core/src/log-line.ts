export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** One line in a function's log. */
export interface LogLine {
  /** ISO 8601. */
  readonly time: string
  readonly level: LogLevel
  /** Who wrote it: the function through its console, or Carpool about the function. */
  readonly stream: 'console' | 'carpool'
  readonly function: string
  readonly revision: string
  /** Absent for what the module scope wrote. */
  readonly invocationId?: string
  readonly msg: string
}

/** Delete and the C1 controls, which terminals obey, and the separators that some readers take for the end of a line. */
const UNSAFE = /[\u007f-\u009f\u2028\u2029]/g

/**
 * A value as one line of NDJSON, with its end. Whatever text is in it, the line is one line to every reader, and harmless on a
 * terminal: `JSON.stringify` escapes the other control characters and lone surrogates.
 */
export function jsonLine(value: object): string {
  return `${JSON.stringify(value).replaceAll(UNSAFE, escape)}\n`
}

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}
