import { monotonicClock, RoundRobin, type Holder } from '@carpool/core'
import { failure, failureSentence } from './failure.ts'
import type { FetchStream } from './fetch-stream.ts'
import type { FetchOutcome } from './fetcher.ts'
import type { EgressRequest } from './messages.ts'

/**
 * How long fetches and sockets may be begun and stopped in one turn of the thread's event loop, in ms: each takes a tenth of
 * that.
 */
const TURN_MS = 1

/** The turns in which connections are begun and stopped. */
export function createEgressTurns(): RoundRobin {
  return new RoundRobin({ turnMs: TURN_MS, clock: monotonicClock, nextTurn: setImmediate, afterTask: afterPromises })
}

/** Calls back when no promise has anything to do any more. Most of what begins a connection is done in promises. */
function afterPromises(callback: () => void): void {
  queueMicrotask(() => process.nextTick(callback))
}

/** Nothing of it has left. */
const STOPPED: FetchOutcome = {
  result: { ok: false, message: failureSentence('aborted') },
  body: new Uint8Array(),
  end: 'aborted',
  bytesOut: 0,
  bytesIn: 0,
}

interface RunningFetch extends Holder {
  readonly ending: AbortController
  readonly stream: FetchStream | undefined
}

interface WaitingFetch {
  readonly request: EgressRequest
  readonly stream: FetchStream | undefined
}

type Begin = (request: EgressRequest, ending: AbortController, stream?: FetchStream) => Promise<FetchOutcome>

/**
 * Begins and stops fetches for a bounded time in each turn of the event loop, by round robin between owners and their functions.
 * To open or to end a connection takes the loop a tenth of a millisecond or more, and a function that has a thousand fetches
 * begin or end at once would hold up everybody else's for as long as all of them take. What is stopped before its turn has come
 * never begins.
 */
export class FetchTurns {
  readonly #fetch: Begin
  readonly #settled: (number: number, outcome: FetchOutcome) => void
  readonly #roundRobin: RoundRobin
  /** Those whose turn has not come. */
  readonly #waiting = new Map<number, WaitingFetch>()
  readonly #running = new Map<number, RunningFetch>()

  /** @param settled called once for each fetch, later */
  constructor(fetch: Begin, settled: (number: number, outcome: FetchOutcome) => void, roundRobin = createEgressTurns()) {
    this.#roundRobin = roundRobin
    this.#fetch = fetch
    this.#settled = settled
  }

  /** Undefined: it is over, or nothing of it streams. */
  find(number: number): FetchStream | undefined {
    return (this.#running.get(number) ?? this.#waiting.get(number))?.stream
  }

  begin(number: number, request: EgressRequest, stream?: FetchStream): void {
    this.#waiting.set(number, { request, stream })
    this.#roundRobin.enter(request, () => {
      // One that was stopped meanwhile keeps nothing of its request.
      const waiting = this.#waiting.get(number)
      if (waiting === undefined) return
      this.#waiting.delete(number)
      void this.#run(number, waiting)
    })
  }

  stop(number: number): void {
    const waiting = this.#waiting.get(number)
    if (waiting !== undefined) {
      this.#waiting.delete(number)
      waiting.stream?.close()
      return this.#settled(number, STOPPED)
    }
    const running = this.#running.get(number)
    if (running !== undefined) this.#roundRobin.enter(running, () => running.ending.abort(failure('aborted')))
  }

  async #run(number: number, { request, stream }: WaitingFetch): Promise<void> {
    const ending = new AbortController()
    const { owner, functionName } = request
    this.#running.set(number, { ending, stream, owner, functionName })
    const outcome = await this.#fetch(request, ending, stream)
    this.#running.delete(number)
    this.#settled(number, outcome)
  }
}
