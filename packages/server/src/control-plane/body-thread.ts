/** A thread that reads one body of a request to the control plane. It posts what the body says, or what is wrong with it. */
import { parentPort, workerData } from 'node:worker_threads'
import { CarpoolError } from '@carpool/core'
import { readJson } from './read-json.ts'
import type { ReadBody } from './request-bodies.ts'

parentPort?.postMessage(read(workerData as Uint8Array), [])

function read(bytes: Uint8Array): ReadBody {
  try {
    return { value: readJson(bytes) }
  } catch (cause) {
    if (!(cause instanceof CarpoolError)) throw cause
    return { fault: cause.message }
  }
}
