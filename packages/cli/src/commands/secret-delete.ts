import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addOwnerOption, type OwnerOption } from '../owner-option.ts'
import type { Verb } from '../verb.ts'

export const secretDelete: Verb<ConnectionOptions & OwnerOption> = {
  define(command) {
    addOwnerOption(command)
    addConnectionOptions(command)
  },

  async run({ args: [functionName = '', key = ''], options: { owner, ...options }, io, output }) {
    await connect(options, { io, output }).deleteSecret(functionName, key, owner)
    output.answer({ deleted: key, function: functionName }, `Deleted ${key} of ${functionName}.`)
  },
}
