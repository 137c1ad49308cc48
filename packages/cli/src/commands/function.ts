import type { FunctionInfo } from '@carpool/core'
import type { CliCommand } from '../command.ts'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connect.ts'
import { type Column, renderTable } from '../format.ts'

const COLUMNS: readonly Column<FunctionInfo>[] = [
  { title: 'NAME', text: ({ name }) => name },
  { title: 'OWNER', text: ({ owner }) => owner },
  { title: 'STATE', text: ({ state }) => state },
  { title: 'REVISION', text: ({ revision }) => revision },
  { title: 'DEPLOYED', text: ({ deployedAt }) => deployedAt },
  { title: 'CODE', align: 'right', text: ({ codeBytes }) => `${Math.ceil(codeBytes / 1024)} KiB` },
  { title: 'CALLS', align: 'right', text: ({ invocations }) => String(invocations) },
  { title: 'FAILED', align: 'right', text: ({ failures }) => String(failures) },
  { title: 'URL', text: ({ url }) => url },
]

export const list: CliCommand<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ options, io, output }) {
    const functions = await connect(options, { io, output }).list()
    if (functions.length > 0 || output.json) output.answer(functions, renderTable(COLUMNS, functions, io.stdout))
    if (output.json) return
    for (const { name, reason } of functions) if (reason !== undefined) output.note(`${name} is disabled because ${reason}.`)
    if (functions.length === 0) output.note('There are no functions yet. Deploy one with: carpool deploy <path>')
  },
}

export const deleteFunction: CliCommand<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ args: [name = ''], options, io, output }) {
    const client = connect(options, { io, output })
    await client.delete(name)
    output.answer({ deleted: name, server: client.adminUrl }, `Deleted ${name} at ${client.adminUrl}.`)
  },
}

export const enable: CliCommand<ConnectionOptions> = {
  define(command) {
    addConnectionOptions(command)
    command.addHelpText('after', '\nWhat the function did before is forgotten. A function in quarantine leaves it.')
  },

  async run({ args: [name = ''], options, io, output }) {
    const client = connect(options, { io, output })
    await client.enable(name)
    output.answer({ enabled: name, server: client.adminUrl }, `Enabled ${name} at ${client.adminUrl}.`)
  },
}

interface DisableOptions extends ConnectionOptions {
  readonly reason?: string
}

export const disable: CliCommand<DisableOptions> = {
  define(command) {
    command.option('--reason <text>', 'told to who calls it: it is disabled because <text>')
    addConnectionOptions(command)
    command.addHelpText(
      'after',
      '\nCalls under way go on. Deploying the function again does not enable it; "carpool enable" does.',
    )
  },

  async run({ args: [name = ''], options: { reason, ...options }, io, output }) {
    const client = connect(options, { io, output })
    await client.disable(name, reason === undefined ? {} : { reason })
    output.answer({ disabled: name, server: client.adminUrl }, `Disabled ${name} at ${client.adminUrl}.`)
  },
}
