import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'

export interface ThreadEvents<Message> {
  readonly onMessage: (message: Message) => void
  /** Called once, after the last message. `cause` is absent if the thread ended by itself. */
  readonly onEnd: (cause: unknown) => void
}

export interface Thread<Message> {
  post(message: Message): void
  /** Ends it where it is, and resolves when it has ended. */
  terminate(): Promise<void>
}

/** Starts a thread of this package that runs `<name>-thread`: the source, or what was packed of it. */
export function startThread<To, From>(
  name: 'database' | 'check',
  workerData: unknown,
  { onMessage, onEnd }: ThreadEvents<From>,
): Thread<To> {
  let failure: unknown
  const program = new URL(`./${name}-thread${extname(import.meta.filename)}`, import.meta.url)
  // No flags of this process: a test runner's hooks have no business in it.
  const worker = new Worker(program, { workerData, execArgv: [], name: 'carpool-ledger' })
  worker.on('message', onMessage)
  worker.on('error', (cause) => (failure = cause))
  worker.on('exit', (code) => onEnd(failure ?? (code === 0 ? undefined : new Error(`The thread ended with code ${code}.`))))
  return {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
    post: (message) => worker.postMessage(message),
    terminate: async () => {
      await worker.terminate()
    },
  }
}
