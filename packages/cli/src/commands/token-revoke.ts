import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import type { Verb } from '../verb.ts'

export const tokenRevoke: Verb<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ args: [given = ''], options, io, output }) {
    // Who has the token itself at hand need not look for its id, and it is not sent.
    const id = /^cpt_([0-9a-f]+)_/.exec(given)?.[1] ?? given
    const client = connect(options, { io, output })
    await client.revokeToken(id)
    output.answer({ revoked: id, server: client.adminUrl }, `Revoked ${id} at ${client.adminUrl}.`)
  },
}
