import { CarpoolError } from '@carpool/core'
import type { FromReader, ReaderKind, ReaderRequests, ToReader } from './reader-messages.ts'
import { startThread, type Thread } from './thread.ts'

/** Reads through a thread, which is started when it is first asked for something. */
export class LedgerReader {
  readonly #path: string
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #thread: Thread<ToReader> | undefined
  #nextId = 1
  #isClosed = false

  constructor(path: string) {
    this.#path = path
  }

  /** @throws CarpoolError `data-unusable`, `draining` */
  ask<K extends ReaderKind>(kind: K, query: ReaderRequests[K]['query']): Promise<ReaderRequests[K]['answer']> {
    if (this.#isClosed) return Promise.reject(closing())
    this.#thread ??= this.#start()
    const id = this.#nextId
    this.#nextId += 1
    const waiter = Promise.withResolvers<unknown>()
    this.#waiting.set(id, waiter)
    this.#thread.post({ id, kind, query })
    return waiter.promise as Promise<ReaderRequests[K]['answer']>
  }

  /** Ends the thread; who waits is told so. Resolves when its connection is closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#rejectAll(closing)
    await this.#thread?.terminate()
  }

  #start(): Thread<ToReader> {
    return startThread<ToReader, FromReader>('./reader-thread.ts', this.#path, {
      onMessage: (message) => {
        const waiter = this.#waiting.get(message.id)
        this.#waiting.delete(message.id)
        if ('answer' in message) waiter?.resolve(message.answer)
        else waiter?.reject(new CarpoolError(message.error.code, message.error.message, { cause: message.error.cause }))
      },
      onEnd: (cause) => {
        this.#thread = undefined
        this.#rejectAll(() => new CarpoolError('internal', 'The thread that reads the ledger ended.', { cause }))
      },
    })
  }

  #rejectAll(reason: () => CarpoolError): void {
    for (const waiter of this.#waiting.values()) waiter.reject(reason())
    this.#waiting.clear()
  }
}

function closing(): CarpoolError {
  return new CarpoolError('draining', 'The ledger is closed.')
}
