import { createRequire } from 'node:module'
import { Command, CommanderError } from 'commander'
import type { Io, CliCommand } from './command.ts'
import { EXIT_USAGE, Output, usageError } from './output.ts'
import { COMMAND_GROUPS, COMMANDS } from './command-table.ts'

/**
 * Runs the command.
 * @param argv what follows the command's name
 * @returns the exit code: 0 ok, 1 the operation or the invoked function failed, 2 wrong usage
 */
export async function run(argv: readonly string[], io: Io): Promise<number> {
  const output = new Output(io, asksForJson(argv))
  let exitCode = 0
  const program = createProgram(io, output, (code) => (exitCode = code))
  try {
    await program.parseAsync(argv[0] === 'help' ? [...argv.slice(1), '--help'] : argv, { from: 'user' })
    return exitCode
  } catch (cause) {
    if (!(cause instanceof CommanderError)) return output.fail(cause)
    if (cause.exitCode === 0) return 0
    // Called without a command; commander has printed the help.
    if (cause.code === 'commander.help') return EXIT_USAGE
    return output.fail(usageError(cause.message))
  }
}

function createProgram(io: Io, output: Output, setExitCode: (code: number) => void): Command {
  const program = new Command('carpool')
    .description('A self-hosted function host: many invocations share one process.')
    .version(version())
    .enablePositionalOptions()
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: () => {},
    })
  const loaders = new Map<Command, () => Promise<CliCommand>>()
  const define = async (_: Command, command: Command): Promise<void> => {
    const loaded = await loaders.get(command)?.()
    if (loaded === undefined) return
    await loaded.define(command)
    command.option('--json', loaded.jsonHelp ?? 'print one JSON document on stdout, and all else on stderr')
    command.action(async () => {
      setExitCode((await loaded.run({ args: command.processedArgs, options: command.opts(), io, output })) ?? 0)
    })
  }
  const groups = new Map<string, Command>()
  for (const { usage, group, summary, load } of COMMANDS) {
    if (group !== undefined && !groups.has(group)) {
      groups.set(group, program.command(group).description(COMMAND_GROUPS[group]).hook('preSubcommand', define))
    }
    const parent = group === undefined ? program : groups.get(group)
    if (parent !== undefined) loaders.set(parent.command(usage).description(summary), load)
  }
  return program.hook('preSubcommand', define)
}

/** Asked before the options are parsed, for how to report that they cannot be. */
function asksForJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json')
}

function version(): string {
  const { version } = createRequire(import.meta.url)('../package.json') as { readonly version: string }
  return version
}
