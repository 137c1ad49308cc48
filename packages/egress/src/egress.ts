import { monotonicClock } from '@carpool/core'
import { createAddressPolicy } from './address-policy.ts'
import { failureSentence, type FetchVerdict } from './failure.ts'
import type { EgressLimits } from './limits.ts'
import type { EgressReading, EgressRequest, EgressResult, FromThread, ThreadStart, ToThread } from './messages.ts'
import { Outbox } from './outbox.ts'
import { afterDeath, type ThreadDeaths } from './restart-delay.ts'
import { startThread, type StartThread, type Thread } from './thread.ts'

export interface EgressOptions {
  /** Address ranges in CIDR form, or addresses, that are open although they are not on the public internet, with all their ports. Default: none. */
  readonly allow?: readonly string[]
  /** Address ranges in CIDR form, or addresses, that are closed in any case. Default: none. */
  readonly deny?: readonly string[]
  readonly limits?: Partial<EgressLimits>
  /** The thread has ended, with the fetches in it. */
  readonly onThreadLost?: (lost: { readonly cause: unknown; readonly restartInMs: number }) => void
}

/** Ends a fetch that is not wanted any more. What it is settled with afterwards says what went over until then. */
export type StopFetch = () => void

/** Fetches for functions, under policy, in a thread of its own: here they are only handed over. */
export interface Egress {
  /** @param settled called exactly once, later */
  fetch(request: EgressRequest, settled: (result: EgressResult) => void): StopFetch
  /** Fetches that have ended, by how. */
  readonly verdicts: Readonly<Record<FetchVerdict, number>>
  /** What the thread held a moment ago. */
  readonly reading: EgressReading
  /** Ends the thread with all connections; fetches at work fail. */
  close(): Promise<void>
}

/** How often the thread is asked whether it is there, and after how many questions without a word it is taken for stuck. */
const PING_MS = 2_500
const MAX_UNANSWERED = 4

/**
 * Starts the thread.
 * @throws CarpoolError `invalid-setting` if a range of `allow` or `deny` is none
 */
export function createEgress(options: EgressOptions = {}, parts: ThreadParts = { startThread, pingMs: PING_MS }): Egress {
  const { allow = [], deny = [], limits = {}, onThreadLost = () => {} } = options
  // The thread could only die of a range that is none.
  createAddressPolicy({ allow, deny })
  return new ThreadedEgress({ allow, deny, limits }, parts, onThreadLost)
}

/** What a test may want to have in its hands. */
interface ThreadParts {
  readonly startThread: StartThread
  readonly pingMs: number
}

class ThreadedEgress implements Egress {
  readonly verdicts = { ok: 0, refused: 0, failed: 0, aborted: 0 }
  readonly #start: ThreadStart
  readonly #startThread: StartThread
  readonly #onThreadLost: NonNullable<EgressOptions['onThreadLost']>
  readonly #open = new Map<number, (result: EgressResult) => void>()
  readonly #outbox = new Outbox<ToThread>((items, transfers) => this.#thread?.post(items, transfers), queueMicrotask)
  readonly #watch: NodeJS.Timeout
  #lastNumber = 0
  #reading: EgressReading = NOTHING
  #unanswered = 0
  /** Absent while the next one waits for its start. */
  #thread: Thread | undefined
  #startedAtMs = 0
  #deaths: ThreadDeaths | undefined
  #restart: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(
    start: ThreadStart,
    { startThread, pingMs }: ThreadParts,
    onThreadLost: NonNullable<EgressOptions['onThreadLost']>,
  ) {
    this.#start = start
    this.#startThread = startThread
    this.#onThreadLost = onThreadLost
    this.#launch()
    this.#watch = setInterval(() => this.#ping(), pingMs).unref()
  }

  get reading(): EgressReading {
    return this.#reading
  }

  fetch(request: EgressRequest, settled: (result: EgressResult) => void): StopFetch {
    const number = ++this.#lastNumber
    this.#open.set(number, settled)
    if (this.#thread === undefined) {
      queueMicrotask(() => this.#fail(number, this.#isClosed ? 'closed' : 'unavailable'))
      return () => {}
    }
    this.#outbox.put({ kind: 'fetch', number, request }, request.body)
    return () => {
      if (this.#open.has(number)) this.#outbox.put({ kind: 'stop', number })
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#watch)
    clearTimeout(this.#restart)
    const thread = this.#thread
    this.#thread = undefined
    this.#failAll('closed')
    await thread?.terminate()
  }

  #launch(): void {
    this.#startedAtMs = monotonicClock()
    this.#unanswered = 0
    try {
      const thread: Thread = this.#startThread(this.#start, {
        onMessage: (items) => {
          this.#unanswered = 0
          for (const item of items) this.#take(item)
        },
        onEnd: (cause) => {
          if (this.#thread === thread) this.#lost(cause)
        },
      })
      this.#thread = thread
    } catch (cause) {
      // The system has no more threads; not even that may end the server.
      this.#lost(cause)
    }
  }

  #take(item: FromThread): void {
    if (item.kind === 'reading') this.#reading = item.reading
    else this.#settle(item.number, item.settled)
  }

  #lost(cause: unknown): void {
    this.#thread = undefined
    this.#reading = NOTHING
    this.#failAll('interrupted')
    this.#deaths = afterDeath(this.#deaths, monotonicClock() - this.#startedAtMs)
    const { delayMs } = this.#deaths
    this.#onThreadLost({ cause, restartInMs: delayMs })
    if (delayMs === 0) this.#launch()
    else this.#restart = setTimeout(() => this.#launch(), delayMs).unref()
  }

  /** A thread that is stuck is as bad as one that has ended. While nobody waits for it, nobody minds. */
  #ping(): void {
    const thread = this.#thread
    if (thread === undefined) return
    if (this.#unanswered >= MAX_UNANSWERED) {
      this.#lost(new Error('The thread does not answer.'))
      void thread.terminate()
      return
    }
    // This thread's own event loop may have been late: only questions count that were asked since.
    this.#unanswered += 1
    this.#outbox.put({ kind: 'ping' })
  }

  #failAll(code: 'closed' | 'interrupted'): void {
    // Whoever is told may begin the next one.
    const numbers = [...this.#open.keys()]
    for (const number of numbers) this.#fail(number, code)
  }

  #fail(number: number, code: 'closed' | 'interrupted' | 'unavailable'): void {
    const result = JSON.stringify({ ok: false, message: failureSentence(code) })
    this.#settle(number, { result, body: NO_BODY, verdict: 'failed', bytesOut: 0, bytesIn: 0 })
  }

  #settle(number: number, result: EgressResult): void {
    const settled = this.#open.get(number)
    if (settled === undefined) return
    this.#open.delete(number)
    this.verdicts[result.verdict] += 1
    settled(result)
  }
}

const NO_BODY = new Uint8Array()
const NOTHING: EgressReading = { open: 0, waiting: 0, connections: 0, memoryBytes: 0 }
