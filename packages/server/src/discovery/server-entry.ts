import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isRunning, startMark } from './process-life.ts'

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
export interface ServerEntry extends ServerAddress {
  /** See {@link startMark}. */
  readonly processMark?: string
}

/** Only files of this form are ever read or removed: the state folder may be one the user shares with other things. */
const FILE_PATTERN = /^server-\d+-[0-9a-f]{12}\.json$/

export function entryFileName(pid: number, random: string): string {
  return `server-${pid}-${random}.json`
}

/** The entries of running servers; those of ended ones are removed from the folder. */
export function readLiveEntries(folder: string): readonly ServerEntry[] {
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
