import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { checkFunctionName, monotonicClock, SharedPool, type Clock, type LogLine } from '@carpool/core'
import { DropReport, LogFile, type LogFileOptions, type LogProblem } from './log-file.ts'

export interface FunctionLogsOptions {
  /** Size of a function's log file at which a new one is begun; one older file is kept. Default: 8 MiB. */
  readonly maxFileBytes?: number
  /** Longest message, in UTF-16 units; the rest is cut off. Default: 16384. */
  readonly maxMessageLength?: number
  /** Most bytes of one function that wait to be written; what comes on top is dropped. Default: 1 MiB. */
  readonly maxBufferBytes?: number
  /** The same for all functions together, shared out among owners and their functions. Default: 32 MiB. */
  readonly maxTotalBufferBytes?: number
  /** How long a line may wait for others to be written with, in ms. A killed server loses these. Default: 100. */
  readonly flushDelayMs?: number
  readonly clock?: Clock
  /** Whether there is a function of that name: asked once, for each log that is there. Others are deleted. Default: there is. */
  readonly isFunction?: (functionName: string) => boolean
  /** Called with lost lines, at most once per minute. */
  readonly onProblem?: (problem: LogProblem) => void
}

export interface LogSelection {
  /** Absent: all functions. */
  readonly functionName?: string
  /** Of these, only those of which it says yes; asked for each line that comes. Default: all. */
  readonly includes?: (functionName: string) => boolean
}

export interface TailQuery extends LogSelection {
  /** Most lines to give; of several functions they are ordered by time. */
  readonly limit: number
}

interface Follower extends LogSelection {
  readonly listener: (line: LogLine) => void
}

const LOG_FILE = /^([a-z0-9-]+)(?:\.1)?\.ndjson$/

/** What functions wrote to their console. Appending never fails and never waits: what cannot be kept is counted and dropped. */
export class FunctionLogs {
  readonly #folder: string
  readonly #files = new Map<string, LogFile>()
  readonly #followers = new Set<Follower>()
  readonly #buffers: SharedPool
  readonly #drops: DropReport
  readonly #fileOptions: LogFileOptions
  readonly #maxMessageLength: number

  constructor(dataDir: string, options: FunctionLogsOptions = {}) {
    this.#folder = join(dataDir, 'logs')
    // What waits is written soon, so an owner who is alone need not leave room for another.
    this.#buffers = new SharedPool(options.maxTotalBufferBytes ?? 32 * 1024 * 1024, { alonePortion: Number.POSITIVE_INFINITY })
    this.#drops = new DropReport(options.clock ?? monotonicClock, options.onProblem ?? (() => {}))
    this.#maxMessageLength = options.maxMessageLength ?? 16 * 1024
    this.#fileOptions = {
      maxFileBytes: options.maxFileBytes ?? 8 * 1024 * 1024,
      maxBufferBytes: options.maxBufferBytes ?? 1024 * 1024,
      flushDelayMs: options.flushDelayMs ?? 100,
    }
    const { isFunction = () => true } = options
    for (const [functionName, newestTime] of existingLogs(this.#folder)) {
      this.#add(functionName, newestTime)
      // The server was killed before it had deleted the log with its function. What fails is tried again at the next start.
      if (!isFunction(functionName)) this.remove(functionName).catch(() => {})
    }
  }

  /** Lines lost since the start. */
  get droppedLines(): number {
    return this.#drops.total
  }

  /** @param owner of the function: shares of what waits to be written go by it. Default: none. */
  append(line: LogLine, owner = ''): void {
    const kept = cutMessage(line, this.#maxMessageLength)
    const file = this.#files.get(line.function) ?? this.#add(checkFunctionName(line.function), '')
    file.append(kept, owner)
    for (const { functionName, includes, listener } of this.#followers) {
      if ((functionName === undefined || functionName === line.function) && includes?.(line.function) !== false) listener(kept)
    }
  }

  /**
   * The newest lines, oldest first. These are lines appended before this call and no others: who calls `follow` in the same turn
   * of the event loop misses nothing and sees nothing twice.
   */
  async tail({ limit, functionName, includes }: TailQuery): Promise<LogLine[]> {
    if (limit <= 0) return []
    if (functionName !== undefined) {
      if (includes?.(functionName) === false) return []
      return (await this.#files.get(functionName)?.newest(limit, Promise.resolve())) ?? []
    }
    let newest: LogLine[] = []
    let turn: Promise<unknown> = Promise.resolve()
    const selected = [...this.#files].filter(([name]) => includes?.(name) !== false).map(([, file]) => file)
    const recentFirst = selected.toSorted((a, b) => (a.newestTime > b.newestTime ? -1 : 1))
    // Every file is asked at once, so that all stop at the same line; they are read one after the other.
    for (const file of recentFirst) {
      const { newestTime } = file
      const isTooOld = (): boolean => newest.length >= limit && newestTime < (newest[0]?.time ?? '')
      const lines = file.newest(limit, turn, isTooOld)
      turn = lines.then((more) => {
        newest = mergeNewest(newest, more, limit)
      })
    }
    await turn
    return newest
  }

  /** Calls the listener with each line as it is appended. It must not throw. Returns what stops it. */
  follow(selection: LogSelection, listener: (line: LogLine) => void): () => void {
    const follower: Follower = { ...selection, listener }
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }

  /** Deletes the log of a function. */
  async remove(functionName: string): Promise<void> {
    const file = this.#files.get(functionName)
    await file?.erase()
    // Names come and go, and whoever reads the logs of all functions looks into each file. The name may be in use again.
    if (file?.isErased && this.#files.get(functionName) === file) this.#files.delete(functionName)
  }

  /** Writes what waits, and reports what was lost. */
  async close(): Promise<void> {
    this.#followers.clear()
    await Promise.all([...this.#files.values()].map((file) => file.flush()))
    this.#drops.flush()
  }

  #add(functionName: string, newestTime: string): LogFile {
    const file = new LogFile(join(this.#folder, functionName), newestTime, this.#fileOptions, this.#buffers, this.#drops)
    this.#files.set(functionName, file)
    return file
  }
}

/** Function names with the time of the last write to their log. */
function existingLogs(folder: string): Map<string, string> {
  const newestTimes = new Map<string, string>()
  try {
    for (const file of readdirSync(folder)) {
      const functionName = LOG_FILE.exec(file)?.[1]
      const stats = functionName === undefined ? undefined : statSync(join(folder, file), { throwIfNoEntry: false })
      if (functionName === undefined || stats === undefined) continue
      const time = stats.mtime.toISOString()
      if (time > (newestTimes.get(functionName) ?? '')) newestTimes.set(functionName, time)
    }
  } catch {
    // A folder that cannot be read shows itself at the first write.
  }
  return newestTimes
}

function mergeNewest(a: readonly LogLine[], b: readonly LogLine[], limit: number): LogLine[] {
  return [...a, ...b].toSorted((x, y) => (x.time < y.time ? -1 : x.time > y.time ? 1 : 0)).slice(-limit)
}

function cutMessage(line: LogLine, maxLength: number): LogLine {
  const { msg } = line
  if (msg.length <= maxLength) return line
  return { ...line, msg: `${msg.slice(0, maxLength)}… (${msg.length - maxLength} more characters cut)` }
}
