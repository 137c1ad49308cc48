import type { FunctionInfo } from '@carpool/core'
import { addConnectionOptions, connect, type ConnectionOptions } from '../connection.ts'
import { renderTable, type Column } from '../table.ts'
import type { Verb } from '../verb.ts'

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

export const list: Verb<ConnectionOptions> = {
  define: (command) => addConnectionOptions(command),

  async run({ options, io, output }) {
    const functions = await connect(options, { io, output }).list()
    if (functions.length > 0 || output.json) output.answer(functions, renderTable(COLUMNS, functions, io.stdout))
    if (output.json) return
    for (const { name, reason } of functions) if (reason !== undefined) output.note(`${name} is disabled because ${reason}.`)
    if (functions.length === 0) output.note('There are no functions yet. Deploy one with: carpool deploy <path>')
  },
}
