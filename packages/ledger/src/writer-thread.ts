/** The thread that writes the ledger. */
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { BatchWriter } from './batch-writer.ts'
import { openForWriting } from './database.ts'
import { unusable } from './failure.ts'
import { fileIdentity } from './file-identity.ts'
import { Retention } from './retention.ts'
import { ringOf } from './ring.ts'
import { takeStock } from './stock.ts'
import { WriterLoop } from './writer-loop.ts'
import type { FromWriter, WriterReady, WriterStart } from './writer-messages.ts'

const { path, memory } = workerData as WriterStart

function tell(message: FromWriter): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
  parentPort?.postMessage(message)
}

function open(): { database: DatabaseSync; ready: WriterReady } | undefined {
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

const opened = open()
if (opened !== undefined && parentPort !== null) {
  const { database, ready } = opened
  const ring = ringOf(memory)
  const parts = { writer: new BatchWriter(database, ring), retention: new Retention(database), isFileInPlace: fileIdentity(path) }
  tell(ready)
  new WriterLoop({ words: ring.words, port: parentPort, ...parts }).run()
  database.close()
}
