import type { Command } from 'commander'
import type { Io } from './io.ts'
import type { Output } from './output.ts'

/** One verb of the command: its options, and what it does. */
export interface Verb<Options = object> {
  /** Help for `--json` where it differs from the usual. */
  readonly jsonHelp?: string
  /** Adds the options and the help texts. */
  define(command: Command): void | Promise<void>
  /** @returns the exit code; nothing means 0 */
  run(call: Call<Options>): Promise<number | void>
}

/** A verb as it was called. */
export interface Call<Options> {
  readonly args: readonly string[]
  readonly options: Options
  readonly io: Io
  readonly output: Output
}
