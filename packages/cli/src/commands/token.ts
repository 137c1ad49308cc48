import { MAX_TOKEN_DAYS, TOKEN_SCOPES, type TokenInfo, type TokenScope } from '@carpool/core'
import { InvalidArgumentError } from 'commander'
import type { CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, renderTable } from '../format.ts'
import { wholeNumber } from '../options.ts'

interface TokenCreateOptions extends ConnectionOptions {
  readonly owner: string
  readonly scope: readonly TokenScope[]
  readonly days?: number
}

export const tokenCreate: CliCommand<TokenCreateOptions> = {
  define(command) {
    command
      .requiredOption('--owner <owner>', 'whose functions it is for; an owner is there once there is a token')
      .requiredOption('--scope <scopes>', `what it allows, with commas between: ${TOKEN_SCOPES.join(', ')}`, scopes)
      .option('--days <number>', 'after how many days it expires (default: never)', wholeNumber(1, MAX_TOKEN_DAYS))
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\ndeploy: deploy and delete functions, set secrets. invoke: call functions through the control plane. read: lists, logs, usage.' +
        '\nadmin: all of it for every owner, tokens, the audit log, and enabling functions.' +
        '\nOnly the token goes to stdout. It is not kept: who loses it makes another one.',
    )
  },

  async run({ options: { owner, scope, days, ...options }, io, output }) {
    const request = { owner, scopes: scope, ...(days !== undefined && { days }) }
    const client = connect(options, { io, output })
    const created = await client.createToken(request)
    output.answer({ ...created, server: client.adminUrl }, created.token)
    const end = created.expiresAt === undefined ? '' : `, until ${created.expiresAt}`
    if (output.json) return
    const what = `Token ${created.id} of ${owner} for ${created.scopes.join(', ')}${end}`
    output.note(`${what}, at ${client.adminUrl}. It is shown only now.`)
  },
}

function scopes(text: string): readonly TokenScope[] {
  const names = text.split(',').map((name) => name.trim())
  const known = TOKEN_SCOPES.filter((scope) => names.includes(scope))
  if (names.every((name) => (TOKEN_SCOPES as readonly string[]).includes(name))) return known
  throw new InvalidArgumentError(`It must be one or more of ${TOKEN_SCOPES.join(', ')}, with commas between.`)
}

const COLUMNS: readonly Column<TokenInfo>[] = [
  { title: 'ID', text: ({ id }) => id },
  { title: 'OWNER', text: ({ owner }) => owner },
  { title: 'SCOPES', text: ({ scopes }) => scopes.join(',') },
  { title: 'CREATED', text: ({ createdAt }) => createdAt },
  { title: 'EXPIRES', text: ({ expiresAt }) => expiresAt ?? 'never' },
  { title: 'LAST USED', text: ({ lastUsedAt }) => lastUsedAt ?? 'never' },
]

export const tokenList: CliCommand<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ options, io, output }) {
    const tokens = await connect(options, { io, output }).tokens()
    if (tokens.length > 0 || output.json) output.answer(tokens, renderTable(COLUMNS, tokens, io.stdout))
    else output.note("There are no tokens but the operator's. Make one with: carpool token create")
  },
}

export const tokenRevoke: CliCommand<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ args: [given = ''], options, io, output }) {
    // The token itself may be given in place of its id; it is not sent.
    const id = /^cpt_([0-9a-f]+)_/.exec(given)?.[1] ?? given
    const client = connect(options, { io, output })
    await client.revokeToken(id)
    output.answer({ revoked: id, server: client.adminUrl }, `Revoked ${id} at ${client.adminUrl}.`)
  },
}
