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

const { dataDir, upTo, afterSequence } = workerData as ThreadStart

function post(message: FromThread): void {
  parentPort?.postMessage(message, [])
}

class DatabaseThread {
  readonly #database: DatabaseSync
  readonly #isFileInPlace: () => boolean
  readonly #importer: Importer
  readonly #retention: Retention
  #upTo: JournalPosition | undefined
  #isClosing = false
  #isBlocked = false
  #retryTimer: NodeJS.Timeout | undefined
  #retentionTimer: NodeJS.Timeout | undefined

  constructor(database: DatabaseSync, path: string, importer: Importer) {
    this.#database = database
    this.#isFileInPlace = fileIdentity(path)
    this.#importer = importer
    this.#retention = new Retention(database)
  }

  receive(message: ToThread): void {
    switch (message.kind) {
      case 'written':
        this.#upTo = message.upTo
        // What failed is tried again in its own time.
        if (this.#retryTimer === undefined) this.#bringIn()
        return
      case 'question':
        this.#upTo = message.upTo
        return this.#answer(message)
      case 'retention':
        this.#retention.beforeMs = message.beforeMs
        return this.#retain()
      case 'close':
        this.#upTo = undefined
        this.#isClosing = true
        return this.#bringIn()
    }
  }

  /** Brings in what is written. If the database does not take it now, it is tried again. */
  #bringIn(): void {
    clearTimeout(this.#retryTimer)
    this.#retryTimer = undefined
    this.#requireFile()
    const isDone = this.#attempt(() => this.#bringInOnce())
    if (!isDone) this.#retryTimer = setTimeout(() => this.#bringIn(), RETRY_MS)
    else if (this.#isClosing) this.#close()
  }

  #bringInOnce(): void {
    this.#importer.bringIn(this.#upTo)
    this.#postImported()
  }

  #answer({ id, about, query }: Extract<ToThread, { kind: 'question' }>): void {
    this.#requireFile()
    let code: ErrorCode = 'ledger-unavailable'
    try {
      // An answer without what was written last would be wrong.
      this.#bringInOnce()
      code = 'data-unusable'
      const database = this.#database
      const answer =
        about === 'usage' ? readUsage(database, query as UsageQuery) : readInvocations(database, query as InvocationQuery)
      post({ kind: 'answer', id, answer })
    } catch (cause) {
      post({ kind: 'no answer', id, code, message: unusable(cause).message, cause: String(cause) })
    }
  }

  /** Deletes what is old in small steps, so that nothing else waits for all of it. */
  #retain(): void {
    clearTimeout(this.#retentionTimer)
    let isMore = true
    const isDone = this.#attempt(() => {
      isMore = this.#retention.step()
    })
    if (isMore) this.#retentionTimer = setTimeout(() => this.#retain(), isDone ? RETENTION_PAUSE_MS : RETRY_MS)
  }

  /** Does what the disk may refuse. Gives false if it does. */
  #attempt(work: () => void): boolean {
    try {
      work()
      if (this.#isBlocked) this.#postImported()
      this.#isBlocked = false
      return true
    } catch (cause) {
      this.#isBlocked = true
      post({ kind: 'blocked', message: describeFailure(cause), cause: String(cause), isDamage: isDamage(cause) })
      return false
    }
  }

  #postImported(): void {
    post({ kind: 'imported', through: this.#importer.through })
  }

  /** Rows in a file that was deleted are lost, so this thread ends, and the next one begins a new file. */
  #requireFile(): void {
    if (!this.#isFileInPlace()) throw new Error(`${LEDGER_FILE} was moved or deleted while it was in use.`)
  }

  #close(): void {
    clearTimeout(this.#retentionTimer)
    this.#database.close()
    parentPort?.close()
  }
}

function open(): DatabaseThread {
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
    return new DatabaseThread(database, path, importer)
  } catch (cause) {
    database?.close()
    // Without the cause, which may not go over to another thread.
    throw new CarpoolError('data-unusable', unusable(cause).message)
  }
}

const thread = open()
parentPort?.on('message', (message: ToThread) => thread.receive(message))
