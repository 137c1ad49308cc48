import { problemOfError, type CarpoolError } from '@carpool/core'
import type { ServerAddress } from '@carpool/server/discovery'
import { renderTable, type Column } from './table.ts'
import { usageError } from './usage-error.ts'
import type { Call } from './verb.ts'
import { visibleText } from './visible-text.ts'

/** What to tell servers of one machine apart by. */
const COLUMNS: readonly Column<Omit<ServerAddress, 'token'>>[] = [
  { title: 'SERVER', text: ({ url }) => url },
  { title: 'CONTROL PLANE', text: ({ adminUrl }) => adminUrl },
  { title: 'DATA FOLDER', text: ({ dataDir }) => visibleText(dataDir) },
  { title: 'STARTED', text: ({ startedAt }) => startedAt },
]

/** Lists the servers of this machine where it is not clear which one is meant. @returns the error to end with */
export function severalServers(
  servers: readonly ServerAddress[],
  { io, output }: Pick<Call<unknown>, 'io' | 'output'>,
): CarpoolError {
  const listed = servers.map(({ url, adminUrl, dataDir, startedAt, pid }) => ({ url, adminUrl, dataDir, startedAt, pid }))
  const how = 'and this folder does not tell which one is meant: name it with --url or CARPOOL_URL'
  const error = usageError(`${servers.length} servers run on this machine, ${how}`)
  output.note(renderTable(COLUMNS, listed, io.stderr))
  if (output.json) output.answer({ error: { ...problemOfError(error), servers: listed } }, '')
  return error
}
