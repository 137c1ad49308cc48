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
