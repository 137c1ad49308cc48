/** A thread that reads the whole file while the server serves. It posts what is wrong; nothing if it is sound. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkIntegrity, openForReading } from './database.ts'
import { unusable } from './failure.ts'

try {
  const database = openForReading(workerData as string)
  checkIntegrity(database)
  database.close()
} catch (cause) {
  parentPort?.postMessage(unusable(cause).message, [])
}
