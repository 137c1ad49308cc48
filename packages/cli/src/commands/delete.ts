import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import type { Verb } from '../verb.ts'

export const deleteVerb: Verb<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ args: [name = ''], options, io, output }) {
    const client = connect(options, { io, output })
    await client.delete(name)
    output.answer({ deleted: name, server: client.adminUrl }, `Deleted ${name} at ${client.adminUrl}.`)
  },
}
