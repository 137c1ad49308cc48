import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addOwnerOption, type OwnerOption } from '../owner-option.ts'
import { readSecretValue } from '../secret-value.ts'
import type { Verb } from '../verb.ts'

interface SecretSetOptions extends ConnectionOptions, OwnerOption {
  readonly value?: string
}

export const secretSet: Verb<SecretSetOptions> = {
  define(command) {
    command.option(
      '--value <text>',
      'the value itself; other users of this machine may see it, and it stays in the history of the shell',
    )
    addOwnerOption(command)
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nThe value comes from stdin, or is asked for on a terminal. The function reads it in env and process.env.' +
        '\nIf the function is deployed, a new revision of the same code takes its place; calls under way keep the old value.',
    )
  },

  async run({ args: [functionName = '', key = ''], options: { value, owner, ...options }, io, output }) {
    const client = connect(options, { io, output })
    const info = await client.setSecret(functionName, key, value ?? (await readSecretValue(key, io)), owner)
    const where = info.revision === undefined ? 'for when it is deployed' : `revision ${info.revision} has it`
    const { adminUrl: server } = client
    output.answer({ ...info, server }, `Set ${key} of ${functionName} at ${server}: ${where}.`)
  },
}
