import { randomBytes } from 'node:crypto'
import { mkdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { startMark } from './process-life.ts'
import { entryFileName, readLiveEntries, type ServerAddress, type ServerEntry } from './server-entry.ts'
import { isTrusted, stateFolders, type Environment } from './state-folders.ts'

export type ServerAnnouncement = Omit<ServerAddress, 'startedAt'>

export interface Announcement {
  /** The file that announces the server; undefined if no state folder can be written to, so that `--url` is needed to find it. */
  readonly file: string | undefined
  /** Ends the announcement; doing so twice is harmless. */
  withdraw(): void
}

/**
 * Lets {@link findServers} in other processes of this user find a server. Call it once the server listens. Only this user can
 * read the announcement, for it holds the token.
 * @param env where the state folder is looked up; default: the process's own
 */
export function announceServer(server: ServerAnnouncement, env: Environment = process.env): Announcement {
  const processMark = startMark(server.pid)
  const { url, adminUrl, token, pid } = server
  const dataDir = withoutLinksBefore(server.dataDir)
  const startedAt = new Date().toISOString()
  const entry = { url, adminUrl, token, pid, dataDir, startedAt, ...(processMark !== undefined && { processMark }) }
  const file = stateFolders(env).reduce<string | undefined>((written, folder) => written ?? tryWrite(folder, entry), undefined)
  return {
    file,
    withdraw: () => {
      if (file !== undefined) rmSync(file, { force: true })
    },
  }
}

/**
 * As the system names it, for it is compared with working folders. The data folder itself may be a link to elsewhere: what
 * counts is where that link is.
 */
function withoutLinksBefore(folder: string): string {
  try {
    return join(realpathSync(dirname(folder)), basename(folder))
  } catch {
    return folder
  }
}

function tryWrite(folder: string, entry: ServerEntry): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    if (!isTrusted(folder)) return undefined
    // Only for what it removes: a folder that no command reads must not fill up.
    readLiveEntries(folder)
    const file = join(folder, entryFileName(entry.pid, randomBytes(6).toString('hex')))
    const unfinished = `${file}.tmp`
    writeFileSync(unfinished, `${JSON.stringify(entry, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(unfinished, file)
    return file
  } catch {
    return undefined
  }
}
