import { MAX_RESPONSE_HEAD } from '@carpool/core'
import { type BodyKind, type GuestFailure, type InvokeHead, OF_CALL } from '../bridge.ts'
import { maxBodyBytes, tooLongText } from './body-limit.ts'
import { Channel, type Framing, NOT_SENT } from './channels.ts'
import { entryMs } from './clock.ts'
import { letGoOfUnread } from './fetches.ts'
import { jsonParse, jsonStringify, SafeMap, SafeSet, SafeTypeError } from './language/primordials.ts'
import { bridge } from './port.ts'
import { DOMException } from './web-api/dom-exception.ts'
import { describeError } from './web-api/errors.ts'
import type { HostRequest } from './web-api/fetch/request.ts'

/** Those without an answer. */
const running = new SafeMap<number, Invocation>()

/** One call of the handler, from `invoke` to its one answer. */
export class Invocation implements HostRequest, Framing {
  readonly number: number
  readonly bodyKind: BodyKind
  readonly body: string
  /** When the entry began that brought it. */
  readonly startedMs = entryMs()
  /** Told first when the invocation is canceled: it aborts `request.signal`. */
  onCancel: ((reason: unknown) => void) | undefined
  /** Why it was canceled; undefined unless it was. */
  cancelReason: unknown = undefined
  #watchers: SafeSet<(reason: unknown) => void> | undefined
  /** What comes of a request whose body streams, and what goes of an answer that does. */
  channel: Channel | undefined
  readonly #headText: string
  #head: InvokeHead | undefined
  #answerHead = ''
  #isHeadSaid = false

  constructor(number: number, headText: string, bodyKind: BodyKind, body: string) {
    this.number = number
    this.#headText = headText
    this.bodyKind = bodyKind
    this.body = body
    running.set(number, this)
    if (bodyKind === 'stream') this.channel = new Channel(OF_CALL, number, number, undefined, this)
  }

  /** Parsed when it is first needed: many handlers never look at the request. */
  get head(): InvokeHead {
    return (this.#head ??= jsonParse(this.#headText) as InvokeHead)
  }

  /** Ends it without an answer: what it still gives is dropped, and what goes on for it is told to stop. */
  cancel(): void {
    if (!running.delete(this.number)) return
    const reason = new DOMException('The operation was aborted.', 'AbortError')
    this.cancelReason = reason
    const { onCancel } = this
    onCancel?.(reason)
    this.#watchers?.forEach((tell) => tell(reason))
    this.channel?.close(reason)
  }

  /** Calls back when it is canceled, after its `request.signal` was aborted. @returns what takes that back */
  whenCanceled(tell: (reason: unknown) => void): () => void {
    const watchers = (this.#watchers ??= new SafeSet())
    watchers.add(tell)
    return () => void watchers.delete(tell)
  }

  /** Answers, unless the invocation has ended already. */
  answer(headJson: string, bodyKind: BodyKind, body: string): void {
    // A text has at least as many bytes as it is long; the host counts them exactly.
    if (body.length > maxBodyBytes) {
      return this.refuse(tooLongText('response', body.length))
    }
    if (headJson.length > MAX_RESPONSE_HEAD) {
      return this.refuse(`The head of the response has ${headJson.length} characters; the limit is ${MAX_RESPONSE_HEAD}.`)
    }
    if (!running.has(this.number)) return
    bridge.answer(this.number, headJson, bodyKind, body)
    this.#ended()
  }

  /**
   * Answers with what is sent by the channel that this gives: as a whole if all of it is sent in this entry, else the head
   * leaves at the end of the entry.
   * @returns undefined if the invocation has ended already
   */
  answerStream(headJson: string): Channel | undefined {
    if (!running.has(this.number)) return undefined
    if (headJson.length > MAX_RESPONSE_HEAD) {
      this.refuse(`The head of the response has ${headJson.length} characters; the limit is ${MAX_RESPONSE_HEAD}.`)
      return undefined
    }
    this.#answerHead = headJson
    this.channel ??= new Channel(OF_CALL, this.number, this.number, undefined, this)
    this.channel.begin()
    return this.channel
  }

  /**
   * Accepts a WebSocket: its messages come and go by the channel that this gives. {@link end} follows once it is closed.
   * @returns undefined if the invocation has ended already
   */
  acceptWebSocket(headJson: string): Channel | undefined {
    if (!running.has(this.number)) return undefined
    const framing: Framing = {
      begin: () => {
        bridge.answerHead(this.number, headJson)
        return (this.#isHeadSaid = true)
      },
      broke: (error) => {
        if (this.#isHeadSaid) bridge.streamAbort(this.number, OF_CALL, NOT_SENT)
        else this.fail(error)
      },
    }
    this.channel = new Channel(OF_CALL, this.number, this.number, undefined, framing)
    this.channel.begin()
    return this.channel
  }

  /** Part of the channel. */
  begin(isWhole: boolean): boolean {
    const channel = this.channel!
    if (isWhole && channel.leavingBytes <= maxBodyBytes) {
      this.answer(this.#answerHead, 'bytes', channel.takeLeaving())
      return false
    }
    // Its body goes nowhere: nothing would hold up a stream without end.
    if (this.head.method === 'HEAD') {
      this.answer(this.#answerHead, 'none', '')
      return false
    }
    this.#isHeadSaid = true
    bridge.answerHead(this.number, this.#answerHead)
    return true
  }

  /** Part of the channel: the body has left. */
  end(): void {
    if (!running.has(this.number)) return
    bridge.endAnswer(this.number)
    this.#ended()
  }

  /** Part of the channel: the answer could not be sent. */
  broke(error: unknown): void {
    this.fail(error)
  }

  /** Ends as `exception` with what the handler threw, or what the body of its answer broke off with. */
  fail(thrown: unknown): void {
    const { message, stack } = describeError(thrown)
    this.#fail(failureJson('exception', message, stack), thrown)
  }

  /** Ends as `invalid-response`. */
  refuse(message: string, stack = ''): void {
    this.#fail(failureJson('invalid-response', message, stack), new SafeTypeError(message))
  }

  #fail(failure: string, error: unknown): void {
    if (!running.has(this.number)) return
    // What was sent before is the client's. If that cannot leave, the call has failed by now.
    if (this.#isHeadSaid) this.channel?.flush()
    if (!running.delete(this.number)) return
    try {
      bridge.fail(this.number, failure)
    } finally {
      this.channel?.close(error)
      letGoOfUnread(this.number)
    }
  }

  #ended(): void {
    running.delete(this.number)
    letGoOfUnread(this.number)
    this.channel?.close(new SafeTypeError('The invocation has ended.'))
  }
}

function failureJson(outcome: GuestFailure['outcome'], message: string, stack: string): string {
  return `{"outcome":"${outcome}","message":${jsonStringify(message)},"stack":${jsonStringify(stack)}}`
}

/** Cancels an invocation, unless it has ended. */
export function cancelInvocation(number: number): void {
  running.get(number)?.cancel()
}

const NOTHING = (): void => {}

/** {@link Invocation.whenCanceled} of the invocation of that number; without effect if it has ended. */
export function whenCanceled(number: number, tell: (reason: unknown) => void): () => void {
  return running.get(number)?.whenCanceled(tell) ?? NOTHING
}

/** Whether a value is an object that could be a promise, native or not. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  )
}

/**
 * Calls `use` with what a promise of user code gives; fails the invocation if it rejects. `await` takes a promise of this context
 * as it is, without a look at a `then` or a species that user code may have replaced.
 */
export async function whenSettled(value: unknown, invocation: Invocation, use: (value: unknown) => void): Promise<void> {
  try {
    use(await value)
  } catch (error) {
    invocation.fail(error)
  }
}
