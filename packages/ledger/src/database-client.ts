import { backoffMs, CarpoolError } from '@carpool/core'
import type { JournalPosition } from './journal-format.ts'
import type { LedgerProblem } from './ledger-types.ts'
import { startThread, type Thread } from './thread.ts'
import type { FromThread, QuestionKind, Questions, ThreadReady, ThreadStart, ToThread } from './thread-messages.ts'

/** The thread is told of what is written this long after it was told before. */
const TELL_INTERVAL_MS = 100
/** Most records that may wait in the journal, for a gigabyte or so. */
const MAX_BEHIND = 6_000_000
const MAX_RESTART_DELAY_MS = 5000
/** Threads that end in a row without having done anything, from which on nobody should wait for the next one. */
const HOPELESS_FAILURES = 5

export interface DatabaseClientOptions {
  readonly dataDir: string
  readonly onProblem: (problem: LedgerProblem) => void
  /** Undefined before this process has a journal, and after it has closed it. */
  readonly position: () => JournalPosition | undefined
}

interface OpenQuestion {
  readonly message: Extract<ToThread, { kind: 'question' }>
  readonly waiter: PromiseWithResolvers<unknown>
}

/** The main thread's end of the thread of the database, which is started again if it dies. */
export class DatabaseClient {
  readonly #options: DatabaseClientOptions
  readonly #opening = Promise.withResolvers<ThreadReady>()
  readonly #closed = Promise.withResolvers<void>()
  readonly #questions = new Map<number, OpenQuestion>()
  #thread: Thread<ToThread> | undefined
  #nextId = 1
  /** The last record that is known to be in the database. */
  #through = 0
  #isOpen = false
  #isReady = false
  #isRefusing = false
  #isClosing = false
  #hasGivenUp = false
  /** Threads that ended in a row without having brought anything in. */
  #failures = 0
  #restartTimer: NodeJS.Timeout | undefined
  #tellTimer: NodeJS.Timeout | undefined
  #retentionBeforeMs: number | undefined
  #blocked: { readonly message: string; readonly isFatal: boolean } | undefined

  private constructor(options: DatabaseClientOptions) {
    this.#options = options
  }

  /** @throws CarpoolError `data-unusable` */
  static async start(options: DatabaseClientOptions): Promise<{ client: DatabaseClient; ready: ThreadReady }> {
    const client = new DatabaseClient(options)
    client.#startThread()
    return { client, ready: await client.#opening.promise }
  }

  /** Why nothing more should be written to the journal, in words for an operator. What is in it is safe. */
  unavailable(lastSequence: number): string | undefined {
    if (this.#blocked?.isFatal === true) return this.#blocked.message
    if (lastSequence - this.#through <= MAX_BEHIND) return undefined
    return this.#blocked?.message ?? `More than ${MAX_BEHIND} records wait to be brought into the ledger.`
  }

  /** Has what is written brought in, in a while. */
  written(): void {
    this.#tellTimer ??= setTimeout(() => {
      this.#tellTimer = undefined
      this.#tellPosition()
    }, TELL_INTERVAL_MS).unref()
  }

  /** The answer has everything that was written before. @throws CarpoolError `ledger-unavailable`, `data-unusable`, `draining` */
  ask<K extends QuestionKind>(about: K, query: Questions[K]['query']): Promise<Questions[K]['answer']> {
    const upTo = this.#options.position()
    if (this.#isRefusing || upTo === undefined) return Promise.reject(closing())
    const id = this.#nextId
    this.#nextId += 1
    const question: OpenQuestion = { message: { kind: 'question', id, about, query, upTo }, waiter: Promise.withResolvers() }
    this.#questions.set(id, question)
    // If there is none, the next one is asked.
    this.#thread?.post(question.message)
    return question.waiter.promise as Promise<Questions[K]['answer']>
  }

  /** Rows of hours that ended before this may go. */
  retain(beforeMs: number): void {
    this.#retentionBeforeMs = beforeMs
    this.#thread?.post({ kind: 'retention', beforeMs })
  }

  /** Tells who waits for an answer that there will be none. */
  refuseQuestions(): void {
    this.#isRefusing = true
    this.#rejectQuestions(closing)
  }

  /** Ends the thread when everything is in the database, or after that time. The journal must be closed. */
  async close(timeoutMs: number): Promise<void> {
    this.refuseQuestions()
    this.#isClosing = true
    clearTimeout(this.#tellTimer)
    if (this.#thread === undefined) this.#startThread()
    else this.#thread.post({ kind: 'close' })
    const timer = setTimeout(() => this.#giveUp(), timeoutMs)
    await this.#closed.promise
    clearTimeout(timer)
  }

  #startThread(): void {
    clearTimeout(this.#restartTimer)
    const workerData: ThreadStart = {
      dataDir: this.#options.dataDir,
      upTo: this.#options.position(),
      afterSequence: this.#through,
    }
    this.#thread = startThread<ToThread, FromThread>('database', workerData, {
      onMessage: (message) => this.#receive(message),
      onEnd: (cause) => this.#ended(cause),
    })
    if (this.#retentionBeforeMs !== undefined) this.retain(this.#retentionBeforeMs)
    for (const { message } of this.#questions.values()) this.#thread.post(message)
    if (this.#isClosing) this.#thread.post({ kind: 'close' })
  }

  #tellPosition(): void {
    const upTo = this.#options.position()
    if (upTo !== undefined) this.#thread?.post({ kind: 'written', upTo })
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        this.#through = message.through
        this.#isOpen = true
        this.#isReady = true
        this.#opening.resolve(message)
        return this.#unblock()
      case 'unusable':
        if (!this.#isOpen) return this.#opening.reject(new CarpoolError('data-unusable', message.message))
        this.#block(message.message, undefined, true)
        return this.#isClosing ? this.#giveUp() : undefined
      case 'imported':
        this.#through = message.through
        this.#failures = 0
        return
      case 'blocked':
        return this.#block(message.message, message.cause, message.isDamage)
      case 'unblocked':
        return this.#unblock()
      case 'problem':
        return this.#options.onProblem({ message: message.message })
      case 'answer':
        return this.#take(message.id)?.resolve(message.answer)
      case 'no answer': {
        const { code, message: detail, cause } = message
        return this.#take(message.id)?.reject(new CarpoolError(code, detail, { cause }))
      }
    }
  }

  #ended(cause: unknown): void {
    const hasEndedInOrder = this.#isReady && cause === undefined
    this.#thread = undefined
    this.#isReady = false
    this.#rejectQuestions(() => new CarpoolError('internal', 'The thread of the ledger ended.', { cause }))
    if (!this.#isOpen) {
      this.#opening.reject(new CarpoolError('internal', 'The thread of the ledger does not start.', { cause }))
    } else if (this.#hasGivenUp || (this.#isClosing && hasEndedInOrder)) {
      clearTimeout(this.#restartTimer)
      this.#closed.resolve()
    } else {
      this.#failures += 1
      const message = 'The thread that writes the ledger ended; it is started again.'
      if (cause !== undefined) this.#block(message, cause, this.#failures >= HOPELESS_FAILURES)
      this.#restartTimer = setTimeout(() => this.#startThread(), backoffMs(this.#failures, MAX_RESTART_DELAY_MS))
    }
  }

  #block(message: string, cause: unknown, isFatal: boolean): void {
    const isNews = this.#blocked?.message !== message
    this.#blocked = { message, isFatal }
    if (isNews) this.#options.onProblem({ message, cause })
  }

  #unblock(): void {
    if (this.#blocked === undefined) return
    this.#blocked = undefined
    this.#options.onProblem({ message: 'The ledger is written again.' })
  }

  #giveUp(): void {
    this.#hasGivenUp = true
    this.#options.onProblem({ message: 'What is left in the journal is brought into the ledger when it is opened again.' })
    if (this.#thread !== undefined) return void this.#thread.terminate()
    clearTimeout(this.#restartTimer)
    this.#closed.resolve()
  }

  #rejectQuestions(reason: () => CarpoolError): void {
    for (const { waiter } of this.#questions.values()) waiter.reject(reason())
    this.#questions.clear()
  }

  #take(id: number): PromiseWithResolvers<unknown> | undefined {
    const question = this.#questions.get(id)
    this.#questions.delete(id)
    return question?.waiter
  }
}

function closing(): CarpoolError {
  return new CarpoolError('draining', 'The ledger is closed.')
}
