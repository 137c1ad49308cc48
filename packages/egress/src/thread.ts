import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { FromThread, ThreadStart, ToThread } from './messages.ts'

export interface ThreadEvents {
  readonly onMessage: (items: readonly FromThread[]) => void
  /** Called once, after the last message. */
  readonly onEnd: (cause: unknown) => void
}

export interface Thread {
  /** @param transfers memory that goes over to the thread */
  post(items: readonly ToThread[], transfers: readonly ArrayBuffer[]): void
  /** Ends it where it is, and resolves when it has ended. */
  terminate(): Promise<void>
}

export type StartThread = (start: ThreadStart, events: ThreadEvents) => Thread

/** A thread that leaks ends by itself before the process does; bodies are not in its heap. */
const MAX_HEAP_MB = 512
/** Its program: the source, or what was packed of it. */
const PROGRAM = new URL(`./egress-thread${extname(import.meta.filename)}`, import.meta.url)

/** Starts the thread that makes connections. It does not keep the process alive. */
export const startThread: StartThread = (start, { onMessage, onEnd }) => {
  let failure: unknown
  const worker = new Worker(PROGRAM, {
    workerData: start,
    name: 'carpool-egress',
    // No flags of this process: a test runner's hooks have no business in it. And nothing of its environment, as no proxy may come from there.
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  })
  worker.unref()
  worker.on('message', onMessage)
  worker.on('error', (cause) => (failure = cause))
  worker.on('exit', (code) => onEnd(failure ?? new Error(`The thread ended with code ${code}.`)))
  return {
    post: (items, transfers) => worker.postMessage(items, [...transfers]),
    terminate: async () => {
      await worker.terminate()
    },
  }
}
