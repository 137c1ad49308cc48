/** A thread that reads the ledger through a connection of its own, so that a long scan holds up no write. */
import type { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import type { InvocationQuery, UsageQuery } from '@carpool/core'
import { checkIntegrity, openForReading } from './database.ts'
import { unusable } from './failure.ts'
import { fileIdentity } from './file-identity.ts'
import { readInvocations } from './invocation-query.ts'
import type { FromReader, ToReader } from './reader-messages.ts'
import { readUsage } from './usage-query.ts'

const path = workerData as string
let database: DatabaseSync | undefined
let isFileInPlace = (): boolean => true

function answer({ id, kind, query }: ToReader): FromReader {
  try {
    if (database !== undefined && !isFileInPlace()) {
      database.close()
      database = undefined
    }
    if (database === undefined) {
      database = openForReading(path)
      isFileInPlace = fileIdentity(path)
    }
    if (kind === 'usage') return { id, answer: readUsage(database, query as UsageQuery) }
    if (kind === 'invocations') return { id, answer: readInvocations(database, query as InvocationQuery) }
    checkIntegrity(database)
    return { id, answer: null }
  } catch (cause) {
    const { code, message } = unusable(cause)
    return { id, error: { code, message, cause: String(cause) } }
  }
}

parentPort?.on('message', (request: ToReader) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
  parentPort?.postMessage(answer(request))
})
