import type { Worker } from 'node:worker_threads'
import { backoffMs, CarpoolError } from '@carpool/core'
import { startThread } from '@carpool/core/start-thread'
import { Failure, type LedgerProblem } from './failure.ts'
import type { JournalPosition } from './journal-format.ts'
import type { FromThread, QuestionKind, Questions, ThreadReady, ThreadStart, ToThread } from './thread-messages.ts'

/** At least so long between two messages to the thread that something was written. */
const WRITTEN_INTERVAL_MS = 100
/** Most records that may wait in the journal: a gigabyte or so. */
const MAX_BEHIND = 6_000_000
const MAX_RESTART_DELAY_MS = 5000
/** After so many threads in a row that ended without having brought anything in, calls are refused. */
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
  readonly #failure: Failure
  /** Nothing more should be written to the journal while it fails like that. */
  #isFatal = false
  #phase: 'opening' | 'open' | 'refusing' | 'closing' | 'given up' = 'opening'
  #thread: Worker | undefined
  #nextId = 1
  /** The last record that is known to be in the database. */
  #through = 0
  /** Threads that ended in a row without having brought anything in. */
  #failures = 0
  #restartTimer: NodeJS.Timeout | undefined
  #writtenTimer: NodeJS.Timeout | undefined
  #retentionBeforeMs: number | undefined

  private constructor(options: DatabaseClientOptions) {
    this.#options = options
    this.#failure = new Failure(options.onProblem)
  }

  /** @throws CarpoolError `data-unusable` */
  static async start(options: DatabaseClientOptions): Promise<{ client: DatabaseClient; ready: ThreadReady }> {
    const client = new DatabaseClient(options)
    client.#startThread()
    return { client, ready: await client.#opening.promise }
  }

  /** Why nothing more should be written to the journal, in words for an operator. What is in it is safe. */
  unavailable(lastSequence: number): string | undefined {
    const { message } = this.#failure
    if (message !== undefined && this.#isFatal) return message
    if (lastSequence - this.#through <= MAX_BEHIND) return undefined
    return message ?? `More than ${MAX_BEHIND} records wait to be brought into the ledger.`
  }

  /** Has the thread bring in what is written, soon. */
  written(): void {
    this.#writtenTimer ??= setTimeout(() => {
      this.#writtenTimer = undefined
      const upTo = this.#options.position()
      if (upTo !== undefined) this.#post({ kind: 'written', upTo })
    }, WRITTEN_INTERVAL_MS).unref()
  }

  /** The answer has everything that was written before. @throws CarpoolError `ledger-unavailable`, `data-unusable`, `draining` */
  ask<K extends QuestionKind>(about: K, query: Questions[K]['query']): Promise<Questions[K]['answer']> {
    const upTo = this.#options.position()
    if (this.#phase !== 'open' || upTo === undefined) return Promise.reject(closing())
    const id = this.#nextId
    this.#nextId += 1
    const question: OpenQuestion = { message: { kind: 'question', id, about, query, upTo }, waiter: Promise.withResolvers() }
    this.#questions.set(id, question)
    // If there is no thread, the next one is asked.
    this.#post(question.message)
    return question.waiter.promise as Promise<Questions[K]['answer']>
  }

  /** Rows of hours that ended before this may go. */
  retain(beforeMs: number): void {
    this.#retentionBeforeMs = beforeMs
    this.#post({ kind: 'retention', beforeMs })
  }

  /** Rejects the open questions, and all that come. */
  refuseQuestions(): void {
    this.#phase = 'refusing'
    this.#rejectQuestions(closing)
  }

  /** Ends the thread when everything is in the database, or after that time. The journal must be closed. */
  async close(timeoutMs: number): Promise<void> {
    this.refuseQuestions()
    this.#phase = 'closing'
    clearTimeout(this.#writtenTimer)
    if (this.#thread === undefined) this.#startThread()
    else this.#post({ kind: 'close' })
    const timer = setTimeout(() => this.#giveUp(), timeoutMs)
    await this.#closed.promise
    clearTimeout(timer)
  }

  #startThread(): void {
    clearTimeout(this.#restartTimer)
    const { dataDir, position } = this.#options
    const workerData: ThreadStart = { dataDir, upTo: position(), afterSequence: this.#through }
    const options = { workerData, name: 'carpool-ledger' }
    this.#thread = startThread('database-thread', import.meta.url, options, (cause) => this.#ended(cause))
    this.#thread.on('message', (message: FromThread) => this.#receive(message))
    if (this.#retentionBeforeMs !== undefined) this.retain(this.#retentionBeforeMs)
    for (const { message } of this.#questions.values()) this.#post(message)
    if (this.#phase === 'closing') this.#post({ kind: 'close' })
  }

  #post(message: ToThread): void {
    this.#thread?.postMessage(message, [])
  }

  #receive(message: FromThread): void {
    switch (message.kind) {
      case 'ready':
        if (this.#phase === 'opening') this.#phase = 'open'
        this.#through = message.through
        this.#opening.resolve(message)
        return this.#failure.clear()
      case 'imported':
        this.#through = message.through
        this.#failures = 0
        return this.#failure.clear()
      case 'blocked':
        return this.#fail(message.message, message.cause, message.isDamage)
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

  /** @param cause undefined: it closed in order, and everything is in the database */
  #ended(cause: unknown): void {
    this.#thread = undefined
    this.#rejectQuestions(() => new CarpoolError('internal', 'The thread of the ledger ended.', { cause }))
    const unusable = unusableOf(cause)
    if (this.#phase === 'opening') {
      const failed = new CarpoolError('internal', 'The thread of the ledger does not start.', { cause })
      return this.#opening.reject(unusable ?? failed)
    }
    if (this.#phase === 'given up' || (this.#phase === 'closing' && cause === undefined)) return this.#closed.resolve()
    this.#failures += 1
    const message = 'The thread that writes the ledger ended; it is started again.'
    if (unusable === undefined) this.#fail(message, cause, this.#failures >= HOPELESS_FAILURES)
    else this.#fail(unusable.message, undefined, true)
    if (unusable !== undefined && this.#phase === 'closing') return this.#giveUp()
    this.#restartTimer = setTimeout(() => this.#startThread(), backoffMs(this.#failures, MAX_RESTART_DELAY_MS))
  }

  #fail(message: string, cause: unknown, isFatal: boolean): void {
    this.#isFatal = isFatal
    this.#failure.set(message, cause)
  }

  #giveUp(): void {
    this.#phase = 'given up'
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

/** The thread throws a CarpoolError if it cannot use the files; on the way here it loses its class. */
function unusableOf(cause: unknown): CarpoolError | undefined {
  if (!(cause instanceof Error && 'code' in cause && cause.code === 'data-unusable')) return undefined
  return new CarpoolError('data-unusable', cause.message)
}
