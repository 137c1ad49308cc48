import { isUtf8 } from 'node:buffer'
import type { LogLevel } from '@carpool/core'
import {
  BODY_KINDS,
  CREDIT_UNIT,
  LOG_LEVELS,
  OF_SOCKET,
  OWNER_MASK,
  SAYS,
  type BodyKind,
  type LoadReport,
} from '@carpool/runtime/bridge'
import { NO_BODY } from '@carpool/wire'
import type { Account } from '../accounting/account.ts'
import { streamKey, type Stream } from '../calls/streams.ts'
import type { LogThrottle } from '../limits/log-throttle.ts'
import type { TimerTable } from './timer-table.ts'
import type { Batch } from '../scheduler/batch.ts'
import type { GuestCallback, OnMessage } from './guest-isolate.ts'

/** What the bridge needs of a guest. */
export interface BridgedGuest {
  readonly batch: Batch | undefined
  readonly isOver: boolean
  readonly timers: TimerTable
  readonly logs: LogThrottle
  readonly streams: ReadonlyMap<number, Stream>
  readMessages(): void
  accountOf(invocation: number): Account
}

/** The calls of the host, as guests act on them. Numbers and texts come from the guest: trust neither. */
export interface GuestCalls<G> {
  answered(guest: G, invocation: number, head: string, kind: BodyKind, body: string): void
  /** The body streams behind it. */
  headAnswered(guest: G, invocation: number, head: string): void
  answerEnded(guest: G, invocation: number): void
  failed(guest: G, invocation: number, failure: string): void
  fetchStarted(guest: G, invocation: number, fetch: number, head: string, kind: BodyKind, body: string): void
  fetchStopped(guest: G, fetch: number): void
  socketOpened(guest: G, invocation: number, socket: number, target: string): void
  /** The invocation sends by it. */
  socketUsed(guest: G, invocation: number, socket: number): void
  tlsStarted(guest: G, socket: number, options: string): void
  socketStopped(guest: G, socket: number): void
  /** The guest got round to a `cancel`: its messages about that invocation came before. */
  canceled(guest: G, invocation: number): void
  logged(guest: G, invocation: number, level: LogLevel, text: string, isRejection: boolean): void
}

/** Ties what an isolate needs before it exists to the guest around it. */
export interface Relay<G> {
  guest: G | undefined
  onLoaded: ((report: LoadReport) => void) | undefined
}

/** What a guest can call. Its thread blocks until it has the answer. */
export function callbacksOf(relay: Relay<BridgedGuest>): Record<'drain', GuestCallback> {
  return {
    drain: () => {
      const { guest } = relay
      if (guest?.batch !== undefined) guest.batch.wasBlocked = true
      guest?.readMessages()
      return loopWatch.blockedMs()
    },
  }
}

/** Passes each message of a guest on to whom it concerns. */
export function messageHandler<G extends BridgedGuest>(guest: G, relay: Relay<G>, calls: GuestCalls<G>): OnMessage {
  return (op, a, b, c, text, said) => {
    // What is read after the end of the isolate was dealt with comes too late: the invocation may have begun anew. Only its log
    // counts.
    if (guest.isOver && op !== SAYS.log) return
    // Bytes are of streams only.
    const body = typeof said === 'string' ? said : ''
    switch (op) {
      case SAYS.loaded:
        return relay.onLoaded?.(JSON.parse(text) as LoadReport)
      case SAYS.answer:
        return calls.answered(guest, a, text, BODY_KINDS[c] ?? 'none', body)
      case SAYS.fail:
        return calls.failed(guest, a, text)
      case SAYS.canceled:
        return calls.canceled(guest, a)
      case SAYS.startTimer:
        return guest.timers.start(b, c, guest.accountOf(a))
      case SAYS.stopTimer:
        return guest.timers.stop(a)
      case SAYS.startFetch:
        return calls.fetchStarted(guest, a, b, text, BODY_KINDS[c] ?? 'none', body)
      case SAYS.stopFetch:
        return calls.fetchStopped(guest, a)
      case SAYS.answerHead:
        return calls.headAnswered(guest, a, text)
      case SAYS.endAnswer:
        return calls.answerEnded(guest, a)
      case SAYS.streamData:
        if ((c & OWNER_MASK) === OF_SOCKET) calls.socketUsed(guest, b, a)
        return streamOf(guest, a, c)?.sent(c, text, said)
      case SAYS.streamCredit:
        return streamOf(guest, a, c)?.took(b)
      case SAYS.streamAbort:
        return streamOf(guest, a, c)?.gaveUp(c, text)
      case SAYS.joinStreams: {
        const target = streamOf(guest, b, Math.floor(c / CREDIT_UNIT))
        return target === undefined ? undefined : streamOf(guest, a, c)?.joinTo(target, Number(text))
      }
      case SAYS.openSocket:
        return calls.socketOpened(guest, a, b, text)
      case SAYS.startTls:
        return calls.tlsStarted(guest, a, text)
      case SAYS.stopSocket:
        return calls.socketStopped(guest, a)
      case SAYS.log:
        if (guest.logs.take(text, b === 1)) calls.logged(guest, a, LOG_LEVELS[c] ?? 'info', text, b === 1)
    }
  }
}

function streamOf({ streams }: BridgedGuest, number: number, flags: number): Stream | undefined {
  return streams.get(streamKey(flags & OWNER_MASK, number))
}

/** Turns bytes into the string form in which a body enters a guest. */
export function encodeBody(bytes: Uint8Array): [kind: BodyKind, body: string] {
  if (bytes.length === 0) return ['none', '']
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  return isUtf8(buffer) ? ['text', buffer.toString('utf8')] : ['bytes', buffer.toString('latin1')]
}

/** Turns a body that left a guest back into bytes. */
export function decodeBody(kind: BodyKind, body: string): Uint8Array {
  if (kind === 'none' || body.length === 0) return NO_BODY
  return Buffer.from(body, kind === 'bytes' ? 'latin1' : 'utf8')
}

/** A shorter pause is not worth it, in ms. */
const MIN_PAUSE_MS = 5
/** Longest pause, in ms. */
const MAX_PAUSE_MS = 1000

/**
 * Whether guests keep the event loop from turning. isolated-vm hands over calls until none waits; one guest that floods the host
 * runs out of them each time it drains, but several can hand the host from one to the other for ever. Each then has to pause for
 * as long as the loop has stood, which grows until all of them pause together.
 */
class LoopWatch {
  #firstDrainAtMs: number | undefined

  /** For how long the loop has not turned, in ms; 0 if that is next to nothing. */
  blockedMs(nowMs: number = performance.now()): number {
    if (this.#firstDrainAtMs === undefined) {
      this.#firstDrainAtMs = nowMs
      setImmediate(() => (this.#firstDrainAtMs = undefined))
      return 0
    }
    const blockedMs = nowMs - this.#firstDrainAtMs
    return blockedMs < MIN_PAUSE_MS ? 0 : Math.min(blockedMs, MAX_PAUSE_MS)
  }
}

const loopWatch = new LoopWatch()
