import type { Command } from 'commander'
import type { Readable, Writable } from 'node:stream'
import type { Output } from './output.ts'

/** One command of the command line: its options, and what it does. */
export interface CliCommand<Options = object> {
  /** Help for `--json` where it differs from the usual. */
  readonly jsonHelp?: string
  /** Adds the options and the help texts. */
  define(command: Command): void | Promise<void>
  /** @returns the exit code; nothing means 0 */
  run(call: Call<Options>): Promise<number | void>
}

/** A command as it was called. */
export interface Call<Options> {
  readonly args: readonly string[]
  readonly options: Options
  readonly io: Io
  readonly output: Output
}

/** What a command reads from and writes to; `process` is one. */
export interface Io {
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
  readonly env: Readonly<Record<string, string | undefined>>
  /** The working folder: absolute, without links. */
  cwd(): string
}
