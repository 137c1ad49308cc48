import { CarpoolError, problemOfError } from '@carpool/core'
import { findServers, type ServerAddress, serverAt, serverFor } from '@carpool/server/discovery'
import type { Command } from 'commander'
import { ApiClient } from './api-client.ts'
import type { Call, Io } from './command.ts'
import { type Column, renderTable, visibleText } from './format.ts'
import { usageError } from './output.ts'

export interface ConnectionOptions {
  readonly url?: string
  readonly token?: string
}

export function addConnectionOptions(command: Command): void {
  command
    .option('--url <url>', 'control plane of the server, or on this machine its data plane too (env: CARPOOL_URL)')
    .option('--token <token>', 'token of the control plane (env: CARPOOL_TOKEN)')
    .addHelpText(
      'after',
      '\nWith neither --url nor CARPOOL_URL the server that runs on this machine is used; of several the one whose data' +
        '\nfolder lies in this folder or the nearest one above it. If that leaves it open, they are listed and nothing is done.',
    )
}

/**
 * A client for the server that is meant. A server of this machine says itself where its control plane is and what its token is.
 * @throws CarpoolError `unreachable` if no server is named and none runs here; `usage` if several do and the folder does not tell
 *   which one is meant; `unauthorized` if a token is needed and none is given
 */
export function connect(options: ConnectionOptions, { io, output }: Pick<Call<ConnectionOptions>, 'io' | 'output'>): ApiClient {
  const { env } = io
  const url = namedUrl(options, env)
  const servers = findServers(env)
  const local = url === undefined ? serverFor(servers, folderOf(io)) : serverAt(servers, url.href)
  const token = options.token || ownToken(options, env) || local?.token || meantToken(options, env)
  if (local !== undefined) return new ApiClient({ ...local, token })
  if (url === undefined && servers.length > 0) throw severalServers(servers, { io, output })
  if (url === undefined) {
    throw new CarpoolError(
      'unreachable',
      'No server runs on this machine; start one with: carpool serve, or name one with --url.',
    )
  }
  if (token === undefined && !isLoopback(url)) {
    throw new CarpoolError('unauthorized', `A token is needed for ${url.origin}: give one with --token or CARPOOL_TOKEN.`)
  }
  return new ApiClient({ adminUrl: url.href, token })
}

/** Empty in a folder that was removed: it lies nowhere. */
function folderOf(io: Io): string {
  try {
    return io.cwd()
  } catch {
    return ''
  }
}

/**
 * A token of the environment that comes before the operator's, which a server of this machine says itself: one that "carpool
 * token create" made names the owner to act as.
 */
function ownToken(options: ConnectionOptions, env: Io['env']): string | undefined {
  const token = meantToken(options, env)
  return token?.startsWith('cpt_') ? token : undefined
}

/** The token of the environment, unless the flag names another server than the environment: that one must not be sent it. */
function meantToken({ url }: ConnectionOptions, env: Io['env']): string | undefined {
  const { CARPOOL_TOKEN: token, CARPOOL_URL: ownUrl } = env
  const isMeant = !url || !ownUrl || parseUrl(url)?.origin === parseUrl(ownUrl)?.origin
  return isMeant && token ? token : undefined
}

function namedUrl(options: ConnectionOptions, env: Io['env']): URL | undefined {
  const origin = options.url ? '--url' : 'CARPOOL_URL'
  const text = options.url || env['CARPOOL_URL']
  if (!text) return undefined
  const url = parseUrl(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw usageError(`${origin} must be an http or https URL, not ${JSON.stringify(text)}`)
  if (url.username !== '' || url.password !== '')
    throw usageError(`${origin} must have no name or password in it; --token is for the token`)
  return url
}

function parseUrl(text: string): URL | null {
  return URL.parse(text.includes('://') ? text : `http://${text}`)
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}

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
