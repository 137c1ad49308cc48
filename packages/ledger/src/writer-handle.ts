import { createRingMemory, type RingMemory } from './ring.ts'
import { startThread, type Thread } from './thread.ts'
import type { FromWriter, ToWriter, WriterReady, WriterStart } from './writer-messages.ts'

export interface ReadyThread {
  readonly thread: Thread<ToWriter>
  readonly memory: RingMemory
  readonly ready: WriterReady
}

export interface WriterEvents {
  readonly onReady: (started: ReadyThread) => void
  readonly onMessage: (message: Exclude<FromWriter, WriterReady>) => void
  readonly onEnd: (cause: unknown) => void
}

/** Starts a thread that writes, with a ring of its own. */
export function startWriterThread(path: string, { onReady, onMessage, onEnd }: WriterEvents): Thread<ToWriter> {
  const memory = createRingMemory()
  const workerData: WriterStart = { path, memory }
  const thread: Thread<ToWriter> = startThread<ToWriter, FromWriter>('./writer-thread.ts', workerData, {
    onMessage: (message) => (message.kind === 'ready' ? onReady({ thread, memory, ready: message }) : onMessage(message)),
    onEnd,
  })
  return thread
}
