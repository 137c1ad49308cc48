import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import type { Verb } from '../verb.ts'

interface DisableOptions extends ConnectionOptions {
  readonly reason?: string
}

export const disable: Verb<DisableOptions> = {
  define(command) {
    command.option('--reason <text>', 'told to who calls it: it is disabled because <text>')
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nCalls under way go on. Deploying the function again does not enable it; "carpool enable" does.',
    )
  },

  async run({ args: [name = ''], options: { reason, ...options }, io, output }) {
    const client = connect(options, { io, output })
    await client.disable(name, reason === undefined ? {} : { reason })
    output.answer({ disabled: name, server: client.adminUrl }, `Disabled ${name} at ${client.adminUrl}.`)
  },
}
