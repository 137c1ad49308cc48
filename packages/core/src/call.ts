import type { AnswerSink, BegunAnswer, Upload } from './call-streams.ts'
import type { CarpoolError } from './errors.ts'
import type { Revision } from './function.ts'
import type { RequestHead, ResponseHead } from './http.ts'
import type { InvocationRecord, InvocationResult, Trigger } from './invocation.ts'
import { NO_USAGE, type InvocationUsage } from './usage.ts'
import type { CallerSocket, FunctionSocket } from './web-socket.ts'

const NO_BYTES = new Uint8Array(0)

/** The right to run in a host. Given back exactly once; giving it back again is harmless. */
export interface Slot {
  /** The call waits: another may run. */
  release(): void
  /** The call has sent the head of its answer: from its next wait on it does not count any more, however long its body takes. */
  streams(): void
  /** The call has ended. Gives back what was not given back yet. */
  end(): void
}

/** The stage that holds a call and can take it out again. */
export interface CallHolder {
  /** The client has left. */
  cancel(call: Call): void
}

/** Which calls of functions stand before a call. */
export interface CallChain {
  /** How many functions called each other until it came: each of them waits for the next one, or did. */
  readonly hops: number
  /** Which call from outside it comes of, by a name that tells nothing of that one; empty: it came from outside itself. */
  readonly tree: string
}

/** Before it stands none. */
export const FROM_OUTSIDE: CallChain = { hops: 0, tree: '' }

/** What is known of a call when it comes. */
export interface CallInit {
  /** UUID, version 7. */
  readonly id: string
  readonly functionName: string
  readonly trigger: Trigger
  readonly head: RequestHead
  /** See {@link CallChain}. */
  readonly hops: number
  /** The same. Default: empty. */
  readonly tree?: string
  /** When it came, in ms of the epoch. */
  readonly startedAtMs: number
  /** The same on the monotonic clock, in ms. */
  readonly cameMs: number
}

/**
 * One invocation, from its first byte to its record. It is made once, with all fields, and handed from stage to stage. Each stage
 * reads what the stages before it wrote. The stages are those of the table in ARCHITECTURE.md.
 */
export abstract class Call {
  // Receive.
  readonly id: string
  readonly functionName: string
  readonly trigger: Trigger
  readonly head: RequestHead
  readonly hops: number
  readonly tree: string
  readonly startedAtMs: number
  readonly cameMs: number
  /** Body of the request, whole; empty if it streams. */
  body: Uint8Array = NO_BYTES
  /** Body of the request, if it streams. */
  upload: Upload | undefined = undefined
  /** The client has left. */
  isCanceled = false
  /** Notified when the client leaves; undefined if no stage could do anything. */
  holder: CallHolder | undefined = undefined

  // Route.
  /** The revision that answers; undefined before that is known. */
  revision: Revision | undefined = undefined

  // Admit.
  /** It has a permit, which must be released. */
  isAdmitted = false

  // Place and send.
  /** Id of the host process; 0 if none took it. */
  host = 0
  slot: Slot | undefined = undefined
  /** When the first host took it that did not give it back unbegun, on the monotonic clock, in ms; -1 before that. */
  placedMs = -1
  /** Its number on the connection with its host. */
  number = 0
  /** When its host must have answered if it keeps its limits, on the monotonic clock, in ms. */
  overdueAtMs = 0
  /** It is the first of its revision that its host gets. */
  isFirstInHost = false
  /** A newer revision went live while its host was given this one: the host is to forget it after the answer. */
  isOfStaleRevision = false

  // Run.
  /** What it has used in its present host, as last reported. */
  usage: InvocationUsage = NO_USAGE
  /** The answer whose head came ahead of its body. */
  begun: BegunAnswer | undefined = undefined
  /** Its result in a host that was lost or could not begin it, before it was tried once more. */
  firstResult: InvocationResult | undefined = undefined
  result: InvocationResult | undefined = undefined

  // Record.
  /** It counts as under way until it has a record, or will get none. */
  isUnderWay = false
  record: InvocationRecord | undefined = undefined

  constructor({ id, functionName, trigger, head, hops, tree = '', startedAtMs, cameMs }: CallInit) {
    this.id = id
    this.functionName = functionName
    this.trigger = trigger
    this.head = head
    this.hops = hops
    this.tree = tree
    this.startedAtMs = startedAtMs
    this.cameMs = cameMs
  }

  /** The client has left. Harmless when repeated, and after the end. */
  cancel(): void {
    if (this.isCanceled) return
    this.isCanceled = true
    this.holder?.cancel(this)
  }

  /**
   * The head of its answer has come, and the body streams behind it. {@link end} follows, with a result that is `ok` if the
   * body is whole.
   * @param credit to be called when so many bytes of the body were passed on: as many more may come
   * @returns what takes the body; undefined if this caller wants answers whole
   */
  beginAnswer(_head: ResponseHead, _credit: (bytes: number) => void): AnswerSink | undefined {
    return undefined
  }

  /**
   * The function accepts a WebSocket: its answer has status 101. {@link end} follows when both have closed it, or it broke off.
   * @returns the caller's end, or what is wrong with the answer; undefined if this caller asked for none
   */
  acceptWebSocket(_head: ResponseHead, _socket: FunctionSocket): CallerSocket | string | undefined {
    return undefined
  }

  /**
   * Called exactly once, at the end: without an error if {@link result} and {@link record} are set; else with the refusal, or the
   * fault of ours, that ended it.
   */
  abstract end(error: CarpoolError | undefined): void
}

/** Runs one invocation from routing to its record, and calls {@link Call.end}, now or later. Never throws. */
export type Invoke = (call: Call) => void

/** An invocation that had an outcome. */
export interface FinishedInvocation {
  readonly result: InvocationResult
  /** As it stands in the ledger. */
  readonly record: InvocationRecord
}

/** A call whose end is a promise. */
export class AwaitedCall extends Call {
  readonly #ended = Promise.withResolvers<FinishedInvocation>()

  /** Rejects with the CarpoolError for which the call was refused. */
  get ended(): Promise<FinishedInvocation> {
    return this.#ended.promise
  }

  override end(error: CarpoolError | undefined): void {
    const { result, record } = this
    if (error === undefined && result !== undefined && record !== undefined) this.#ended.resolve({ result, record })
    else this.#ended.reject(error)
  }
}
