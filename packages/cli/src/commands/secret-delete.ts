import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addOwnerOption, type OwnerOption } from '../owner-option.ts'
import type { Verb } from '../verb.ts'

export const secretDelete: Verb<ConnectionOptions & OwnerOption> = {
  define(command) {
    addOwnerOption(command)
    addConnectionOptions(command)
  },

  async run({ args: [functionName = '', key = ''], options: { owner, ...options }, io, output }) {
    const client = connect(options, { io, output })
    await client.deleteSecret(functionName, key, owner)
    const { adminUrl: server } = client
    output.answer({ deleted: key, function: functionName, server }, `Deleted ${key} of ${functionName} at ${server}.`)
  },
}
