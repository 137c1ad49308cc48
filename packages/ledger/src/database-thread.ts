/** The thread of the database: it brings the journal in, deletes what is old, and answers questions, one after the other. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { CarpoolError, type ErrorCode, type InvocationQuery, type UsageQuery } from '@carpool/core'
import { isDamage } from '@carpool/storage'
import { fileIdentity, openForWriting, revisionsThatRan } from './database.ts'
import { describeFailure, LEDGER_FILE, unusable } from './failure.ts'
import { Importer } from './importer.ts'
import { journalNumbers, type JournalPosition } from './journal-format.ts'
import { readInvocations, readUsage } from './queries.ts'
import { Retention } from './retention.ts'
import type { FromThread, ThreadStart, ToThread } from './thread-messages.ts'

const RETRY_MS = 500
/** Between two steps of retention: they take a small part of the thread's time. */
const RETENTION_PAUSE_MS = 10

const { database, importer, isFileInPlace } = open(workerData as ThreadStart)
const retention = new Retention(database)
let upTo: JournalPosition | undefined
let isClosing = false
let isBlocked = false
let retryTimer: NodeJS.Timeout | undefined
let retentionTimer: NodeJS.Timeout | undefined

parentPort?.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'written':
      ;({ upTo } = message)
      // What failed is tried again in its own time.
      if (retryTimer === undefined) bringIn()
      return
    case 'question':
      ;({ upTo } = message)
      return answer(message)
    case 'retention':
      retention.beforeMs = message.beforeMs
      return retain()
    case 'close':
      upTo = undefined
      isClosing = true
      return bringIn()
  }
})

function open({ dataDir, upTo, afterSequence }: ThreadStart): {
  database: DatabaseSync
  importer: Importer
  isFileInPlace: () => boolean
} {
  const path = join(dataDir, LEDGER_FILE)
  let database: DatabaseSync | undefined
  try {
    const opened = openForWriting(path)
    database = opened.database
    const nextFile = (journalNumbers(readdirSync(dataDir)).at(-1) ?? 0) + 1
    const onProblem = (message: string): void => post({ kind: 'problem', message })
    const importer = new Importer(database, { folder: dataDir, afterSequence, onProblem })
    importer.bringIn(upTo)
    post({ kind: 'ready', isChecked: opened.isChecked, through: importer.through, nextFile, ran: revisionsThatRan(database) })
    return { database, importer, isFileInPlace: fileIdentity(path) }
  } catch (cause) {
    database?.close()
    // Without the cause, which may not go over to another thread.
    throw new CarpoolError('data-unusable', unusable(cause).message)
  }
}

function post(message: FromThread): void {
  parentPort?.postMessage(message, [])
}

/** Brings in what is written. If the database does not take it now, it is tried again. */
function bringIn(): void {
  clearTimeout(retryTimer)
  retryTimer = undefined
  requireFile()
  const isDone = attempt(bringInOnce)
  if (!isDone) retryTimer = setTimeout(bringIn, RETRY_MS)
  else if (isClosing) close()
}

function bringInOnce(): void {
  importer.bringIn(upTo)
  post({ kind: 'imported', through: importer.through })
}

function answer({ id, about, query }: Extract<ToThread, { kind: 'question' }>): void {
  requireFile()
  let code: ErrorCode = 'ledger-unavailable'
  try {
    // An answer without what was written last would be wrong.
    bringInOnce()
    code = 'data-unusable'
    const answer =
      about === 'usage' ? readUsage(database, query as UsageQuery) : readInvocations(database, query as InvocationQuery)
    post({ kind: 'answer', id, answer })
  } catch (cause) {
    post({ kind: 'no answer', id, code, message: unusable(cause).message, cause: String(cause) })
  }
}

/** Deletes what is old in small steps, so that nothing else waits for all of it. */
function retain(): void {
  clearTimeout(retentionTimer)
  let isMore = true
  const isDone = attempt(() => {
    isMore = retention.step()
  })
  if (isMore) retentionTimer = setTimeout(retain, isDone ? RETENTION_PAUSE_MS : RETRY_MS)
}

/** Does what the disk may refuse. Gives false if it does. */
function attempt(work: () => void): boolean {
  try {
    work()
    if (isBlocked) post({ kind: 'imported', through: importer.through })
    isBlocked = false
    return true
  } catch (cause) {
    isBlocked = true
    post({ kind: 'blocked', message: describeFailure(cause), cause: String(cause), isDamage: isDamage(cause) })
    return false
  }
}

/** Rows in a file that was deleted are lost, so this thread ends, and the next one begins a new file. */
function requireFile(): void {
  if (!isFileInPlace()) throw new Error(`${LEDGER_FILE} was moved or deleted while it was in use.`)
}

function close(): void {
  clearTimeout(retentionTimer)
  database.close()
  parentPort?.close()
}
