import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import type { Verb } from '../verb.ts'

export const enable: Verb<ConnectionOptions> = {
  define(command) {
    addConnectionOptions(command)
    command.addHelpText('after', '\nWhat the function did before is forgotten. A function in quarantine leaves it.')
  },

  async run({ args: [name = ''], options, io, output }) {
    const client = connect(options, { io, output })
    await client.enable(name)
    output.answer({ enabled: name, server: client.adminUrl }, `Enabled ${name} at ${client.adminUrl}.`)
  },
}
