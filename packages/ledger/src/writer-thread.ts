/** The thread that writes the ledger. It sleeps on shared memory, not in its event loop: so a batch begins without a message. */
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { BatchWriter } from './batch-writer.ts'
import { HOLD_MS, isHoldWorthwhile } from './commit-pace.ts'
import { openForWriting, transact, unusable } from './database.ts'
import { describeFailure } from './failure.ts'
import { HourlySums } from './hourly-sums.ts'
import { Retention } from './retention.ts'
import { ahead, ringOf, WORD } from './ring.ts'
import type { FromWriter, ToWriter, WriterReady, WriterStart } from './writer-messages.ts'

/** Most rows of one transaction: a few ms. */
const MAX_BATCH_ROWS = 1024
/** How often hourly totals are stored: after so many rows, or so long after the first of fewer. */
const SUM_ROWS = 20_000
const SUM_INTERVAL_MS = 1000
const RETRY_MS = 500
/** Between two steps of retention: they take a small part of the thread's time. */
const RETENTION_PAUSE_MS = 10

const { path, memory } = workerData as WriterStart
const ring = ringOf(memory)
const { words } = ring

function tell(message: FromWriter): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
  parentPort?.postMessage(message)
}

function start(): { database: DatabaseSync; ready: WriterReady } | undefined {
  let database: DatabaseSync | undefined
  try {
    const opened = openForWriting(path)
    database = opened.database
    return { database, ready: { kind: 'ready', isChecked: opened.isChecked, ...takeStock(database) } }
  } catch (cause) {
    database?.close()
    tell({ kind: 'unusable', message: unusable(cause).message })
    return undefined
  }
}

function takeStock(database: DatabaseSync): Pick<WriterReady, 'lastSequence' | 'revisions' | 'ran'> {
  const numberOf = (sql: string): number => Number(database.prepare(sql).get()?.['value'])
  const lastSequence = numberOf(`
    SELECT max((SELECT sequence FROM totals_through), coalesce((SELECT max(sequence) FROM invocations), 0),
      coalesce((SELECT max(sequence) FROM background), 0)) AS value`)
  transact(database, () => new HourlySums(database).storeTail(lastSequence))
  const revisions = database.prepare('SELECT key, function, revision, owner, memory_mb FROM revisions').all()
  const ran = database.prepare(`
    SELECT DISTINCT revisions.revision FROM totals JOIN revisions ON revisions.key = totals.revision WHERE invocations > 0`)
  return {
    lastSequence,
    revisions: revisions.map((row) => ({
      key: Number(row['key']),
      functionName: String(row['function']),
      revision: String(row['revision']),
      owner: String(row['owner']),
      memoryMb: Number(row['memory_mb']),
    })),
    ran: ran.all().map((row) => String(row['revision'])),
  }
}

function run(database: DatabaseSync): void {
  const writer = new BatchWriter(database, ring)
  const retention = new Retention(database)
  let mail = 0
  let taken = 0
  let isBlocked = false
  let isHeld = false
  let isSumTurn = false
  let paceRows = 0
  let paceMs = 0
  let sumsDueMs = Number.POSITIVE_INFINITY
  let retentionDueMs = Number.POSITIVE_INFINITY

  /** Tries what may fail for reasons of the disk. */
  const attempt = (work: () => void): boolean => {
    try {
      work()
      if (isBlocked) tell({ kind: 'unblocked' })
      isBlocked = false
      return true
    } catch (cause) {
      if (!isBlocked) tell({ kind: 'blocked', message: describeFailure(cause), cause: String(cause) })
      isBlocked = true
      Atomics.wait(words, WORD.closing, Atomics.load(words, WORD.closing), RETRY_MS)
      return false
    }
  }

  const receive = (): void => {
    mail = Atomics.load(words, WORD.mail)
    for (let parcel = nextMail(); parcel !== undefined; parcel = nextMail()) {
      if (parcel.kind === 'revision') writer.addRevision(parcel.revision)
      else {
        retention.beforeMs = parcel.beforeMs
        retentionDueMs = 0
      }
    }
  }

  const writeBatch = (count: number, hurry: number): void => {
    const beganMs = performance.now()
    Atomics.store(words, WORD.taken, (taken + count) | 0)
    if (!attempt(() => writer.write(taken, count))) return
    taken = (taken + count) | 0
    Atomics.store(words, WORD.committed, taken)
    if (Atomics.exchange(words, WORD.told, 1) === 0) tell({ kind: 'committed' })
    sumsDueMs = Math.min(sumsDueMs, beganMs + SUM_INTERVAL_MS)
    paceRows += count
    if (beganMs - paceMs >= HOLD_MS) {
      isHeld = isHoldWorthwhile(paceRows, beganMs - paceMs)
      paceMs = beganMs
      paceRows = 0
    }
    // A change of the word since before the batch was begun ends this at once.
    if (isHeld) Atomics.wait(words, WORD.hurry, hurry, Math.max(0, beganMs + HOLD_MS - performance.now()))
  }

  for (;;) {
    const signal = Atomics.load(words, WORD.signal)
    const hurry = Atomics.load(words, WORD.hurry)
    const isClosing = Atomics.load(words, WORD.closing) === 1
    const count = Math.min(ahead(Atomics.load(words, WORD.published), taken), MAX_BATCH_ROWS)
    // After the count: what was posted before a slot was filled is received before that is written.
    if (Atomics.load(words, WORD.mail) !== mail) receive()
    const now = performance.now()
    // In turns with batches, so that none waits for all sums.
    const areSumsDue = !isSumTurn && (writer.rowsToSum >= SUM_ROWS || now >= sumsDueMs || (isClosing && writer.rowsToSum > 0))
    isSumTurn = areSumsDue && count > 0
    if (areSumsDue) {
      let isMore = false
      const isDone = attempt(() => {
        isMore = writer.storeSums()
      })
      if (isDone) sumsDueMs = isMore ? 0 : now + SUM_INTERVAL_MS
      else if (isClosing && count === 0) return
    } else if (count > 0) writeBatch(count, hurry)
    else if (isClosing) return
    else if (now >= retentionDueMs) {
      let isMore = true
      const isDone = attempt(() => {
        isMore = retention.step()
      })
      retentionDueMs = isDone && !isMore ? Number.POSITIVE_INFINITY : performance.now() + RETENTION_PAUSE_MS
    } else {
      const untilDueMs = Math.min(sumsDueMs, retentionDueMs) - now
      Atomics.store(words, WORD.idle, 1)
      Atomics.wait(words, WORD.signal, signal, untilDueMs)
      Atomics.store(words, WORD.idle, 0)
    }
  }
}

function nextMail(): ToWriter | undefined {
  return parentPort === null ? undefined : (receiveMessageOnPort(parentPort)?.message as ToWriter | undefined)
}

const started = start()
if (started !== undefined) {
  tell(started.ready)
  run(started.database)
  started.database.close()
}
