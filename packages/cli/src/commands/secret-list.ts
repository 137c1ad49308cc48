import type { SecretInfo } from '@carpool/core'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { addOwnerOption, type OwnerOption } from '../owner-option.ts'
import { renderTable, type Column } from '../table.ts'
import type { Verb } from '../verb.ts'

const COLUMNS: readonly Column<SecretInfo>[] = [
  { title: 'KEY', text: ({ key }) => key },
  { title: 'CREATED', text: ({ createdAt }) => createdAt },
  { title: 'SET', text: ({ updatedAt }) => updatedAt },
]

export const secretList: Verb<ConnectionOptions & OwnerOption> = {
  define(command) {
    addOwnerOption(command)
    addConnectionOptions(command)
    command.addHelpText('after', '\nNobody is given a value.')
  },

  async run({ args: [functionName = ''], options: { owner, ...options }, io, output }) {
    const secrets = await connect(options, { io, output }).secrets(functionName, owner)
    if (secrets.length > 0 || output.json) output.answer(secrets, renderTable(COLUMNS, secrets, io.stdout))
    else output.note(`${functionName} has no secrets. Set one with: carpool secret set ${functionName} <key>`)
  },
}
