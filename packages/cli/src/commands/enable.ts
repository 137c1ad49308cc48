import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import type { Verb } from '../verb.ts'

export const enable: Verb<ConnectionOptions> = {
  define(command) {
    addConnectionOptions(command)
    command.addHelpText('after', '\nWhat the function did before is forgotten. A function in quarantine leaves it.')
  },

  async run({ args: [name = ''], options, io, output }) {
    await connect(options, { io, output }).enable(name)
    output.answer({ enabled: name }, `Enabled ${name}.`)
  },
}
