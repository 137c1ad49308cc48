import type { TokenInfo } from '@carpool/core'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { renderTable, type Column } from '../table.ts'
import type { Verb } from '../verb.ts'

const COLUMNS: readonly Column<TokenInfo>[] = [
  { title: 'ID', text: ({ id }) => id },
  { title: 'OWNER', text: ({ owner }) => owner },
  { title: 'SCOPES', text: ({ scopes }) => scopes.join(',') },
  { title: 'CREATED', text: ({ createdAt }) => createdAt },
  { title: 'EXPIRES', text: ({ expiresAt }) => expiresAt ?? 'never' },
  { title: 'LAST USED', text: ({ lastUsedAt }) => lastUsedAt ?? 'never' },
]

export const tokenList: Verb<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ options, io, output }) {
    const tokens = await connect(options, { io, output }).tokens()
    if (tokens.length > 0 || output.json) output.answer(tokens, renderTable(COLUMNS, tokens, io.stdout))
    else output.note("There are no tokens but the operator's. Make one with: carpool token create")
  },
}
