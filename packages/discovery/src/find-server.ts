import { readLiveEntries, type ServerAddress, type ServerEntry } from './server-entry.ts'
import { isSameServer } from './server-url.ts'
import { isTrusted, stateFolders, type Environment } from './state-folders.ts'

const DEFAULT_ADMIN_PORT = '8081'

interface FindOptions {
  /** Data plane or control plane of the server that is meant. */
  readonly url?: string | undefined
  /** Where the state folder is looked up; default: the process's own. */
  readonly env?: Environment
}

/**
 * Finds a server that runs on this machine as this user: the one at `url`; without it the one on the default control-plane port, else
 * the one that started last.
 */
export function findServer({ url, env = process.env }: FindOptions = {}): ServerAddress | undefined {
  const entries = stateFolders(env).filter(isTrusted).flatMap(readLiveEntries).toSorted(lastStartedFirst)
  const chosen = url === undefined ? chooseServer(entries) : entries.find((entry) => isAt(entry, url))
  if (chosen === undefined) return undefined
  const { processMark: _, ...address } = chosen
  return address
}

function chooseServer(entries: readonly ServerEntry[]): ServerEntry | undefined {
  return entries.find((entry) => URL.parse(entry.adminUrl)?.port === DEFAULT_ADMIN_PORT) ?? entries[0]
}

function isAt(entry: ServerEntry, url: string): boolean {
  return isSameServer(entry.adminUrl, url) || isSameServer(entry.url, url)
}

function lastStartedFirst(a: ServerEntry, b: ServerEntry): number {
  return a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : 0
}
