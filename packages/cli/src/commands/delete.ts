import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import type { Verb } from '../verb.ts'

export const deleteVerb: Verb<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ args: [name = ''], options, io, output }) {
    await connect(options, { io, output }).delete(name)
    output.answer({ deleted: name }, `Deleted ${name}.`)
  },
}
