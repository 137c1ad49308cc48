import type { Duplex } from 'node:stream'
import {
  NO_USAGE,
  ownMemoryOf,
  type Call,
  type CallHolder,
  type Holder,
  type InvocationResult,
  type InvocationUsage,
  type ResponseHead,
  type Revision,
  type StartKind,
  type Upload,
} from '@carpool/core'
import {
  Connection,
  LARGE_BYTES,
  NO_BODY,
  unpackUsage,
  whole,
  type Background,
  type Fetch,
  type FetchHeadCame,
  type FetchSettled,
  type HostCpu,
  type HostStart,
  type Log,
  type LoadReport,
  type SocketClosed,
  type SocketConnected,
  type SocketOpen,
  type SocketStop,
  type StartTls,
  type StartResult,
  type StreamAbort,
  type StreamCredit,
  type StreamData,
  type StreamJoin,
  type ToHost,
  type ToServer,
  type UnsentBody,
} from '@carpool/wire'
import { AnswerStream, UploadSender } from './call-streams.ts'
import { JoinedStreams, type StreamSource, type StreamTarget } from './joined-streams.ts'
import type { HostProgram } from './os-process.ts'
import { PendingReplies } from './pending-replies.ts'
import { ResponseHeadReader } from './response-head.ts'
import { WebSocketAnswer } from './web-socket-answer.ts'

/** The code of a revision as a host needs it. */
export interface RevisionCode {
  readonly source: string
  readonly codeCache?: Uint8Array
  /** Given to the function besides its `env`, and read only when it is loaded. */
  readonly secrets?: Readonly<Record<string, string>>
}

/** What a host needs to know of a revision. */
export type HostRevision = Pick<Revision, 'id' | 'functionName' | 'owner' | 'handlerExport' | 'limits' | 'env'> & {
  /** Its isolate stays while others leave. */
  readonly keepWarm?: boolean
}

/** Bytes of bodies that went over connections for a fetch. */
export interface FetchedBytes {
  readonly bytesOut: number
  readonly bytesIn: number
}

/** What a host says of the sockets of functions, and of the bodies of their fetches. */
export type StreamFromHost = SocketOpen | StartTls | SocketStop | StreamData | StreamCredit | StreamAbort
/** What it is told of them. */
export type StreamToHost = FetchHeadCame | FetchSettled | SocketConnected | SocketClosed | StreamData | StreamCredit | StreamAbort

export type AnswerKind = (AnswerStream | WebSocketAnswer)['kind']

/** What a host sends besides replies. Called on the server's loop, as a frame of the host is read. */
export interface HostEvents {
  ready(): void
  /** How a call ended; its slot was given back. */
  answered(call: Call, result: InvocationResult): void
  /** The host has not begun a call and will not; its slot was given back. */
  unbegun(call: Call): void
  onReport(report: LoadReport): void
  logged(log: Log, text: string): void
  fetchStarted(fetch: Fetch, head: string, body: Uint8Array): void
  /** @param counted what of its bytes the host has counted, as it says */
  fetchStopped(fetch: number, counted: FetchedBytes): void
  /** The bodies of an open fetch. */
  fetchBodies(fetch: number): (StreamSource & StreamTarget) | undefined
  /** Something of a socket, or of the bodies of a fetch. */
  streamSaid(message: StreamFromHost, text: string, body: Uint8Array): void
  /** An answer that streams, or a WebSocket, has begun or ended. */
  answersChanged(functionName: string, kind: AnswerKind, change: 1 | -1): void
  usedInBackground(background: Background): void
  usedCpu(cpu: HostCpu): void
  /** What a function did harms the process for good. */
  poisoned(functionName: string, why: 'stuck' | 'gave-up'): void
  /** An entry of a function has run for a while, or one that had has ended. */
  longEntry(functionName: string, change: 1 | -1): void
  /** A revision that the host was given was loaded without a code cache. */
  uncached(revision: string): void
  /** The isolate of a function has taken much memory, and holds so much now. */
  grown(functionName: string, heldBytes: number): void
  /** The socket has ended or broken, or the host broke the protocol (then with the reason). Called once. */
  closed(reason: Error | undefined): void
}

/** How long a host gets to bring up a revision besides its wall limit, or to make its code cache, in ms. */
const PREPARE_MS = 30_000
/** By it an answer accepts a WebSocket. */
const WEB_SOCKET_STATUS = 101
/** A host that is this late with an answer, after the wall limit that it keeps itself, answers nothing any more, in ms. */
const OVERDUE_GRACE_MS = 3_000

const CANCELED_UNSENT: InvocationResult = {
  outcome: 'canceled',
  start: 'warm',
  usage: NO_USAGE,
  detail: 'The client left before its request was with the host.',
}

const NO_SECOND_BEGIN = 'The host process stood still before it began the invocation, whose body was already on its way.'

/** A call whose body has not left as a whole: its host knows nothing of it. */
interface UnsentCall {
  readonly revision: string
  readonly body: UnsentBody
}

/** The messages between the server and one host about revisions and calls, and the replies that the host still owes. */
export class HostConnection implements CallHolder {
  readonly #events: HostEvents
  readonly #wire: Connection<ToServer, ToHost>
  readonly #pending: PendingReplies
  readonly #given = new Set<string>()
  /** The function of each revision that it was ever given: a retired revision may still do harm. */
  readonly #functionOf = new Map<string, string>()
  /** Revisions of which calls were sent. */
  readonly #ran = new Set<string>()
  readonly #heads = new ResponseHeadReader()
  readonly #unsent = new Map<number, UnsentCall>()
  readonly #uploads = new Map<number, UploadSender>()
  readonly #answers = new Map<number, AnswerStream | WebSocketAnswer>()
  readonly #joined = new JoinedStreams((message) => this.#wire.send(message))
  readonly #maxBodyBytes: number
  readonly #sendOfStream = (message: ToHost, text?: string, body?: Uint8Array): void => this.#wire.send(message, text, body)

  /** @param readyBy when the host should have been ready, on the monotonic clock, in ms */
  constructor(stream: Duplex, { setup, runtime }: HostProgram, readyBy: number, events: HostEvents) {
    this.#events = events
    this.#pending = new PendingReplies(readyBy, (call, result) => {
      if (call.upload !== undefined || call.begun !== undefined) this.#endStreams(call)
      events.answered(call, result)
    })
    this.#maxBodyBytes = setup.maxBodyBytes
    this.#wire = new Connection<ToServer, ToHost>(stream, {
      onMessage: (message, text, body) => this.#receive(message, text, body),
      onClose: (reason) => events.closed(reason),
    })
    this.#wire.send(setup, runtime)
  }

  /** Resolves when the host takes calls; rejects if it is lost before. */
  get untilReady(): Promise<void> {
    return this.#pending.untilReady
  }

  get inFlight(): number {
    return this.#pending.inFlight
  }

  /** The functions of which it was ever given code. */
  get functions(): ReadonlySet<string> {
    return new Set(this.#functionOf.values())
  }

  /** Has the host forget what it has of a function. */
  retireFunction(functionName: string): void {
    for (const revision of this.#given) if (this.#functionOf.get(revision) === functionName) this.retire(revision)
  }

  /** Calls that were ever sent there. */
  get callsSent(): number {
    return this.#pending.callsSent
  }

  /** Whether everything was answered in its place, because the host is gone. */
  get isLost(): boolean {
    return this.#pending.lost
  }

  /** Whether the host owes a reply that it should have given. */
  isOverdue(nowMs: number): boolean {
    return this.#pending.isOverdue(nowMs)
  }

  /** The host is gone: answers all that waits. @param crash see {@link PendingReplies.lose} */
  lose(crash: (functionName: string) => Promise<boolean> | undefined): void {
    this.#unsent.clear()
    this.#pending.lose(crash)
  }

  close(): void {
    this.#wire.close()
  }

  has(revision: string): boolean {
    return this.#given.has(revision)
  }

  /** Gives a revision's code to the host, unless it has it. */
  give(revision: HostRevision, { source, codeCache, secrets }: RevisionCode): void {
    if (this.#given.has(revision.id)) return
    this.#given.add(revision.id)
    this.#functionOf.set(revision.id, revision.functionName)
    const { id, functionName, owner, handlerExport, limits, env, keepWarm = false } = revision
    const load = {
      type: 'load',
      revision: id,
      functionName,
      owner,
      limits,
      env: { ...env, ...secrets },
      keepWarm,
      ...(handlerExport !== undefined && { handlerExport }),
    } as const
    this.#wire.send(load, source, codeCache)
  }

  /**
   * V8's code cache of a revision that was started, in a host that runs nothing else. Undefined if there is none.
   * @param rehearsed after its handler was called, without effect; the revision is of no further use in that host
   */
  makeCodeCache(revision: string, rehearsed: boolean): Promise<Uint8Array | undefined> {
    this.#wire.send({ type: 'make-code-cache', revision, rehearsed })
    return this.#pending.expectCodeCache(revision, performance.now() + PREPARE_MS)
  }

  /** Gives the host a code cache of a revision, if it has the revision: it is loaded with that from now on. */
  useCodeCache(revision: string, codeCache: Uint8Array): void {
    if (this.#given.has(revision)) this.#wire.send({ type: 'use-code-cache', revision }, '', codeCache)
  }

  /** Brings a given revision up in an isolate. */
  start({ id: revision, limits }: HostRevision): Promise<StartResult> {
    this.#wire.send({ type: 'start', revision })
    return this.#pending.expectStarted(revision, performance.now() + limits.wallMs + PREPARE_MS)
  }

  /** Has the host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    if (!this.#given.delete(revision)) return
    // From then on it takes no calls of it.
    for (const unsent of this.#unsent.values()) if (unsent.revision === revision) unsent.body.finish()
    this.#wire.send({ type: 'retire', revision })
  }

  /**
   * Sends a call of a given revision; it leaves with all messages of this turn of the loop, in one frame, unless its body is so
   * large that it takes turns. How the call ends is told to `answered`, as `host-lost` if the host dies.
   */
  send(call: Call): void {
    const { id, head, body, revision } = call
    if (revision === undefined) throw new Error('A call was sent before it was routed.')
    if (!this.#pending.expectAnswer(call, performance.now() + revision.limits.wallMs + OVERDUE_GRACE_MS)) return
    call.holder = this
    call.isFirstInHost = !this.#ran.has(revision.id)
    if (call.isFirstInHost) this.#ran.add(revision.id)
    const { method, url, headers, clientIp } = head
    const text = JSON.stringify({ invocationId: id, method, url, headers, clientIp })
    if (call.upload !== undefined) return this.#sendWithUpload(call, call.upload, revision, text)
    const message = { type: 'invoke', invocation: call.number, id, revision: revision.id } as const
    if (body.length < LARGE_BYTES) return this.#wire.send(message, text, body)
    const { number } = call
    const unsent = this.#wire.bodies.enter(revision, body, (sent) => {
      this.#unsent.delete(number)
      this.#wire.send(message, text, sent)
    })
    if (unsent !== undefined) this.#unsent.set(number, { revision: revision.id, body: unsent })
  }

  #sendWithUpload(call: Call, upload: Upload, revision: Revision, text: string): void {
    const { id, number } = call
    this.#wire.send({ type: 'invoke', streams: true, invocation: number, id, revision: revision.id }, text)
    const sender = new UploadSender(call, upload, this.#sendOfStream, (body, send) =>
      this.#wire.bodies.enterPart(revision, body, send),
    )
    this.#uploads.set(number, sender)
    upload.open(sender)
  }

  /**
   * Takes back the calls that were sent after the first so many. Only for a host that has not read them, and begins none that
   * it reads before it has asked ({@link Away}).
   */
  takeBackAfter(callsSent: number): void {
    for (const invocation of this.#pending.numbersAfter(callsSent)) {
      this.#dropUnsent(invocation)
      this.#unbegun(invocation)
    }
  }

  /** The client of a call that runs here has left. */
  cancel({ number, revision }: Call): void {
    if (this.#dropUnsent(number)) return this.#pending.answer(number, CANCELED_UNSENT)
    const cancel = (): void => this.#wire.send({ type: 'cancel', invocation: number })
    // The messages that came before its client left are the function's.
    const hasMessages = this.#answers.get(number) instanceof WebSocketAnswer
    if (hasMessages && revision !== undefined) this.#wire.bodies.enterPart(revision, NO_BODY, cancel)
    else cancel()
  }

  /** @param holder whose fetch it is */
  settleFetch(holder: Holder, fetch: number, result: string, body: Uint8Array, bytes: FetchedBytes): void {
    const message = { type: 'fetch-settled', fetch, bytesOut: bytes.bytesOut, bytesIn: bytes.bytesIn } as const
    if (body.length < LARGE_BYTES) return this.#wire.send(message, result, body)
    this.#wire.bodies.enter(holder, body, (sent) => this.#wire.send(message, result, sent))
  }

  /** Says something of a socket or fetch: it arrives in the order in which it was said, large bodies of others or not. */
  sayOfStream(holder: Holder, message: StreamToHost, text?: string, body?: Uint8Array): void {
    this.#wire.bodies.enterPart(holder, body ?? NO_BODY, (sent) => this.#wire.send(message, text, sent))
  }

  /** @returns whether the host knows nothing of the call, and will not */
  #dropUnsent(invocation: number): boolean {
    const unsent = this.#unsent.get(invocation)
    if (unsent === undefined) return false
    this.#unsent.delete(invocation)
    unsent.body.drop()
    return true
  }

  #unbegun(invocation: number): void {
    const known = this.#pending.callOf(invocation)
    if (known?.begun !== undefined) return
    // What has left of a body cannot be sent again.
    if (known?.upload !== undefined) {
      const result = { outcome: 'host-lost', start: 'warm', usage: NO_USAGE, detail: NO_SECOND_BEGIN } as const
      return this.#pending.answer(invocation, result)
    }
    const call = this.#pending.takeBack(invocation)
    if (call !== undefined) this.#events.unbegun(call)
  }

  /** The call has ended: nothing of its streams is of use any more. */
  #endStreams({ number, revision }: Call): void {
    this.#uploads.get(number)?.stop()
    this.#uploads.delete(number)
    const answer = this.#answers.get(number)
    if (answer === undefined || revision === undefined) return
    this.#answers.delete(number)
    if (answer instanceof AnswerStream) answer.close()
    this.#events.answersChanged(revision.functionName, answer.kind, -1)
  }

  /** A host may send anything of calls that it has, or has not. */
  #receiveOfCall(message: StreamData | StreamCredit | StreamAbort, text: string, body: Uint8Array): void {
    const { number } = message
    const answer = this.#answers.get(number)
    if (answer instanceof WebSocketAnswer) answer.receive(message, text, body)
    else if (message.type === 'stream-data') answer?.receive(body, message.end === true)
    else if (message.type === 'stream-credit') this.#uploads.get(number)?.credit(whole(message.bytes))
    else if (message.side === 'received') this.#uploads.get(number)?.stop()
  }

  #join(message: StreamJoin): void {
    const { of, number, to } = message
    const source = of === 'call' ? this.#uploads.get(number) : this.#events.fetchBodies(number)
    const target = to.of === 'call' ? this.#answers.get(to.number) : this.#events.fetchBodies(to.number)
    if (source === undefined || target === undefined || target instanceof WebSocketAnswer) return
    this.#joined.join(message, source, target)
  }

  #beginAnswer(call: Call, text: string): void {
    if (call.begun !== undefined || call.revision === undefined) return
    const { streamMs } = call.revision.limits
    this.#pending.dueBy(call, streamMs === 0 ? Number.POSITIVE_INFINITY : performance.now() + streamMs + OVERDUE_GRACE_MS)
    call.slot?.streams()
    const head = this.#heads.read(text)
    const { revision } = call
    const answer =
      typeof head === 'object' && head.status === WEB_SOCKET_STATUS
        ? new WebSocketAnswer(call, head, this.#sendOfStream, (body, send) => this.#wire.bodies.enterPart(revision, body, send))
        : new AnswerStream(call, head, this.#maxBodyBytes, this.#sendOfStream)
    call.begun = answer
    this.#answers.set(call.number, answer)
    this.#events.answersChanged(revision.functionName, answer.kind, 1)
  }

  #receive(message: ToServer, text: string, body: Uint8Array): void {
    // A host may name any revision. It may speak only of those that it was given.
    if ('revision' in message && !this.#functionOf.has(message.revision)) return
    switch (message.type) {
      case 'answer': {
        const { invocation } = message
        const call = this.#pending.callOf(invocation)
        if (call === undefined || call.begun !== undefined) return
        // The host has checked the size, but it runs user code.
        const head =
          body.length > this.#maxBodyBytes
            ? `The response body has ${body.length} bytes; the limit is ${this.#maxBodyBytes}.`
            : notWebSocket(this.#heads.read(text))
        const start = startOf(call, message.start)
        const usage = unpackUsage(message.usage)
        return this.#pending.answer(
          invocation,
          typeof head === 'string'
            ? invalidResponse(head, start, usage)
            : { outcome: 'ok', start, usage, response: { status: head.status, headers: head.headers, body } },
        )
      }
      case 'answer-head': {
        const call = this.#pending.callOf(message.invocation)
        return call === undefined ? undefined : this.#beginAnswer(call, text)
      }
      case 'answer-end': {
        const { invocation } = message
        const call = this.#pending.callOf(invocation)
        const answer = this.#answers.get(invocation)
        if (call === undefined || answer === undefined) return
        const start = startOf(call, message.start)
        const usage = unpackUsage(message.usage)
        const wrong = answer.finish()
        if (wrong !== undefined) return this.#pending.answer(invocation, invalidResponse(wrong, start, usage))
        const { status, headers } = answer.head
        return this.#pending.answer(invocation, { outcome: 'ok', start, usage, response: { status, headers, body: answer.body } })
      }
      case 'failed': {
        const { invocation, outcome, detail, stack } = message
        const call = this.#pending.callOf(invocation)
        if (call === undefined) return
        const start = startOf(call, message.start)
        const usage = unpackUsage(message.usage)
        const wrong = this.#answers.get(invocation)?.wrong
        if (wrong !== undefined) return this.#pending.answer(invocation, invalidResponse(wrong, start, usage))
        return this.#pending.answer(invocation, { outcome, start, usage, detail, ...(stack !== undefined && { stack }) })
      }
      case 'away':
        return this.#wire.send({ type: 'resume', absence: whole(message.absence) })
      case 'unbegun':
        return this.#unbegun(message.invocation)
      case 'background':
        return this.#events.usedInBackground(message)
      case 'pulse':
        for (const [invocation, usage] of message.underWay) this.#pending.used(invocation, unpackUsage(usage))
        return this.#events.usedCpu(message.cpu)
      case 'waiting':
        for (const invocation of message.invocations) this.#pending.waits(invocation)
        return
      case 'load-report':
        return this.#events.onReport(message)
      case 'poisoned': {
        const functionName = this.#functionOf.get(message.revision)
        if (functionName !== undefined) this.#events.poisoned(functionName, message.why === 'gave-up' ? 'gave-up' : 'stuck')
        return
      }
      case 'long-entry': {
        const functionName = this.#functionOf.get(message.revision)
        if (functionName !== undefined) this.#events.longEntry(functionName, message.change === 1 ? 1 : -1)
        return
      }
      case 'grown': {
        const functionName = this.#functionOf.get(message.revision)
        if (functionName !== undefined) this.#events.grown(functionName, whole(message.heldBytes))
        return
      }
      case 'log':
        return this.#events.logged(message, text)
      case 'fetch':
        return this.#events.fetchStarted(message, text, body)
      case 'fetch-stop':
        return this.#events.fetchStopped(message.fetch, { bytesOut: whole(message.bytesOut), bytesIn: whole(message.bytesIn) })
      case 'socket-open':
      case 'start-tls':
      case 'socket-stop':
        return this.#events.streamSaid(message, text, body)
      case 'stream-data':
      case 'stream-credit':
      case 'stream-abort':
        if (message.of === 'call') this.#receiveOfCall(message, text, body)
        else this.#events.streamSaid(message, text, body)
        return
      case 'stream-join':
        return this.#join(message)
      case 'code-cache-made':
        return this.#pending.codeCacheMade(message.revision, body.length === 0 ? undefined : ownMemoryOf(body))
      case 'uncached':
        return this.#events.uncached(message.revision)
      case 'started':
        return this.#pending.started(message.revision, message.result)
      case 'ready':
        this.#pending.ready()
        return this.#events.ready()
    }
  }
}

/** An answer that is whole accepts none. */
function notWebSocket(head: ResponseHead | string): ResponseHead | string {
  return typeof head === 'object' && head.status === WEB_SOCKET_STATUS ? 'The response has status 101, and no WebSocket.' : head
}

function invalidResponse(detail: string, start: StartKind, usage: InvocationUsage): InvocationResult {
  return { outcome: 'invalid-response', start, usage, detail, stack: detail }
}

/** How the call started. Which revision is new to a host is counted here: a host may report anything. */
function startOf({ isFirstInHost }: Call, start: HostStart): 'warm' | 'isolate-cold' | 'host-cold' {
  if (start === 'warm') return 'warm'
  return isFirstInHost ? 'host-cold' : 'isolate-cold'
}
