import { randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { basename, dirname, isAbsolute, join } from 'node:path'
import { isRunning, startMark } from './process-life.ts'

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

/**
 * The servers that run on this machine as this user, the one that started last first.
 * @param env where the state folder is looked up; default: the process's own
 */
export function findServers(env: Environment = process.env): readonly ServerAddress[] {
  return stateFolders(env)
    .filter(isTrusted)
    .flatMap(readLiveEntries)
    .toSorted(lastStartedFirst)
    .map((entry) => {
      const { processMark: _, ...address } = entry
      return address
    })
}

function lastStartedFirst(a: ServerAddress, b: ServerAddress): number {
  return a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : 0
}

/** How to reach a server that runs on this machine. */
export interface ServerAddress {
  /** Data plane. */
  readonly url: string
  /** Control plane. */
  readonly adminUrl: string
  /** Bearer token of the control plane. */
  readonly token: string
  readonly pid: number
  /** Absolute; the folders that it lies in are named without links. */
  readonly dataDir: string
  /** ISO 8601. */
  readonly startedAt: string
}

/** What a file in the state folder holds. */
interface ServerEntry extends ServerAddress {
  /** See {@link startMark}. */
  readonly processMark?: string
}

/** Only files of this form are ever read or removed: the state folder may be one the user shares with other things. */
const FILE_PATTERN = /^server-\d+-[0-9a-f]{12}\.json$/

function entryFileName(pid: number, random: string): string {
  return `server-${pid}-${random}.json`
}

/** The entries of running servers; those of ended ones are removed from the folder. */
function readLiveEntries(folder: string): readonly ServerEntry[] {
  return listEntryFiles(folder).flatMap((file) => {
    const entry = readEntry(file)
    if (entry === undefined) return []
    if (isLive(entry)) return [entry]
    rmSync(file, { force: true })
    return []
  })
}

function listEntryFiles(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => FILE_PATTERN.test(name))
      .map((name) => join(folder, name))
  } catch {
    return []
  }
}

function readEntry(file: string): ServerEntry | undefined {
  try {
    const entry: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return isEntry(entry) ? entry : undefined
  } catch {
    // Withdrawn since the folder was listed, or not ours to read.
    return undefined
  }
}

function isEntry(value: unknown): value is ServerEntry {
  if (typeof value !== 'object' || value === null) return false
  const fields = value as Record<string, unknown>
  const texts = ['url', 'adminUrl', 'token', 'dataDir', 'startedAt']
  return texts.every((name) => typeof fields[name] === 'string') && Number.isInteger(fields['pid']) && Number(fields['pid']) > 0
}

function isLive(entry: ServerEntry): boolean {
  if (!isRunning(entry.pid)) return false
  const mark = startMark(entry.pid)
  return mark === undefined || entry.processMark === undefined || mark === entry.processMark
}

export type Environment = Readonly<Record<string, string | undefined>>

/**
 * The folders that may hold announcements, best first: the server takes the first it can write to, the command reads them all.
 * `CARPOOL_STATE_DIR` stands alone; without it the user's state folder comes before a folder of this user in the temp folder.
 */
function stateFolders(env: Environment): readonly string[] {
  if (env['CARPOOL_STATE_DIR']) return [env['CARPOOL_STATE_DIR']]
  return [userFolder(env), sharedFolder()].filter((folder) => folder !== undefined)
}

/**
 * Whether what the folder holds can only come from this user. In a temp folder that all users share, another user may have made
 * the folder first, to have our token or to be sent our code.
 */
export function isTrusted(folder: string): boolean {
  if (folder !== sharedFolder()) return true
  const found = lstatSync(folder, { throwIfNoEntry: false })
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
}

function userFolder(env: Environment): string | undefined {
  const stateHome = env['XDG_STATE_HOME']
  // The XDG specification has relative paths ignored.
  if (stateHome && isAbsolute(stateHome)) return join(stateHome, 'carpool', 'servers')
  const home = env['HOME'] || homeFolder()
  return home && isAbsolute(home) ? join(home, '.local', 'state', 'carpool', 'servers') : undefined
}

function homeFolder(): string | undefined {
  try {
    return homedir()
  } catch {
    // A user without an entry in the password file, as containers have.
    return undefined
  }
}

function sharedFolder(): string {
  return join(tmpdir(), `carpool-${process.getuid?.() ?? 'user'}`)
}
