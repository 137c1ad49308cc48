/**
 * Every message between the server and a host process. A message travels in a frame (frame.ts) with two attachments, `text` and
 * `body`, which pass through untouched; the comment on a message says what they hold. An attachment that is not named is empty.
 */
import type { FailedOutcome, FunctionLimits, HandlerForm, LogLevel } from '@carpool/core'
import type { PackedUsage } from './usage.ts'

/** First message to a host. text: the guest runtime's script. */
export interface Setup {
  readonly type: 'setup'
  readonly prewarm: number
  readonly maxIsolates: number
  readonly maxBodyBytes: number
  /** Isolates that may be entered at the same time; one that has been entered for `entrySliceMs` does not count any more. */
  readonly enteredIsolates: number
  readonly entrySliceMs: number
  /**
   * Long entries that may run at the same time; other long entries sleep until their time slice. Isolates are made one fewer at a
   * time, and one at least.
   */
  readonly longEntries: number
  /** What the process should stay below, by giving up idle isolates. */
  readonly memoryBudgetBytes: number
  /** Whether the time that functions read stands still during an entry. */
  readonly guestClock: 'frozen' | 'running'
  readonly webAssembly: boolean
}

/** Gives a revision's code to the host, once, before any other message names it. text: source; body: code cache, if any. */
export interface Load {
  readonly type: 'load'
  readonly revision: string
  readonly functionName: string
  /** Whose shares its function has a part in. */
  readonly owner: string
  readonly handlerExport?: string
  readonly limits: FunctionLimits
  readonly env: Readonly<Record<string, string>>
  /** Its isolate stays while others leave. */
  readonly keepWarm?: boolean
}

/**
 * Asks for V8's code cache of a revision that was started, with what its module scope has run; answered by {@link CodeCacheMade}.
 * Only for a host in which nobody else's code runs: it could be a cache of its making.
 */
export interface MakeCodeCache {
  readonly type: 'make-code-cache'
  readonly revision: string
  /** The handler is called before, without any effect outside of its isolate, which must be used for nothing else then. */
  readonly rehearsed: boolean
}

/** A better code cache of a revision that was given. body: the code cache. */
export interface UseCodeCache {
  readonly type: 'use-code-cache'
  readonly revision: string
}

/** Asks the host to bring a loaded revision up in an isolate; answered by {@link Started}. */
export interface Start {
  readonly type: 'start'
  readonly revision: string
}

/** The revision gets no more invocations: the host forgets it when those in flight have ended. */
export interface Retire {
  readonly type: 'retire'
  readonly revision: string
}

/** text: the request's head (JSON of the runtime's InvokeHead); body: the request's body, unless it streams. */
export interface Invoke {
  readonly type: 'invoke'
  /** The body comes behind, as {@link StreamData} of this call. */
  readonly streams?: true
  /** Number of the invocation on this connection, from 1. */
  readonly invocation: number
  /** Public id of the invocation. */
  readonly id: string
  readonly revision: string
}

/** The client left: the invocation ends as `canceled`, with no answer. */
export interface Cancel {
  readonly type: 'cancel'
  readonly invocation: number
}

/** What streams belong to. Each has numbers of its own on a connection. */
export type StreamOwner = 'call' | 'fetch' | 'socket'

/**
 * Bytes of a stream, in order: of a request's body or of what came for a fetch or socket, if the server sends it; of a response's
 * body or of what a fetch or socket sends, if the host does. No more than the core's STREAM_PART_BYTES in one, and no more than
 * its STREAM_WINDOW_BYTES beyond what was credited. body: the bytes; text: with `end` of a WebSocket, JSON of its close code and
 * reason.
 */
export interface StreamData {
  readonly type: 'stream-data'
  readonly of: StreamOwner
  readonly number: number
  /** Nothing comes behind it in this direction. */
  readonly end?: true
  /** It is a message of a WebSocket: of text in UTF-8, or of bytes. Whole, unless {@link more}. */
  readonly message?: 'text' | 'bytes'
  /** The message goes on in the next part, which has the same `message`. */
  readonly more?: true
}

/** The receiver of {@link StreamData} has passed on so many bytes: so many more may come. */
export interface StreamCredit {
  readonly type: 'stream-credit'
  readonly of: StreamOwner
  readonly number: number
  readonly bytes: number
}

/**
 * One direction of a stream ends early: what the sender of this sends breaks off (`sent`), or it takes no more of what comes
 * (`received`). Harmless once that direction has ended. text: why, for the peer.
 */
export interface StreamAbort {
  readonly type: 'stream-abort'
  readonly of: StreamOwner
  readonly number: number
  readonly side: 'sent' | 'received'
}

/**
 * What comes by a stream is to go out by another of the same function, as it is: from here on the server passes it on by
 * itself, and says how much from time to time ({@link StreamMoved}). Its end comes as ever, behind that. Without effect if more
 * of it has left for the host than has come there: that goes out first, and the host asks again.
 */
export interface StreamJoin {
  readonly type: 'stream-join'
  readonly of: 'call' | 'fetch'
  readonly number: number
  readonly to: { readonly of: 'call' | 'fetch'; readonly number: number }
  /** What has come there, and has gone out by the other. */
  readonly cameBytes: number
}

/** So many bytes more have gone from a stream to the one that it was joined with, or that has passed some on. */
export interface StreamMoved {
  readonly type: 'stream-moved'
  readonly of: StreamOwner
  readonly number: number
  readonly bytes: number
}

/** How often the server says {@link StreamMoved}, in ms, while there is something to say. */
export const STREAM_MOVED_MS = 250

/**
 * The head of a response whose body streams behind it, as {@link StreamData} of this fetch; {@link FetchSettled} ends it. text:
 * JSON of the core's FetchResult.
 */
export interface FetchHeadCame {
  readonly type: 'fetch-head'
  readonly fetch: number
}

/** A socket is connected, or speaks TLS now after {@link StartTls}. text: JSON of the core's ConnectedSocket. */
export interface SocketConnected {
  readonly type: 'socket-connected'
  readonly socket: number
}

/** The end of a socket, connected or not. text: JSON of the core's SocketEnd. */
export interface SocketClosed {
  readonly type: 'socket-closed'
  readonly socket: number
  readonly bytesOut: number
  readonly bytesIn: number
}

/**
 * The end of a fetch. text: JSON of the core's FetchResult; body: the response's body. After {@link FetchHeadCame} it says how
 * the body ended: a result that is not ok is why it broke off.
 */
export interface FetchSettled {
  readonly type: 'fetch-settled'
  readonly fetch: number
  /** Bodies of requests that went over connections for it, in bytes. */
  readonly bytesOut: number
  /** Bodies of responses as they came, compressed or not. */
  readonly bytesIn: number
}

/** The answer to {@link Away}: what was sent before may have been taken back, what comes behind was not. */
export interface Resume {
  readonly type: 'resume'
  readonly absence: number
}

export type ToHost =
  | Setup
  | Load
  | MakeCodeCache
  | UseCodeCache
  | Start
  | Retire
  | Invoke
  | Cancel
  | FetchHeadCame
  | FetchSettled
  | SocketConnected
  | SocketClosed
  | StreamData
  | StreamCredit
  | StreamAbort
  | StreamMoved
  | Resume

/** The host has its setup and takes invocations. */
export interface Ready {
  readonly type: 'ready'
}

/** body: the code cache; empty if there is none, as of a revision that did not start. */
export interface CodeCacheMade {
  readonly type: 'code-cache-made'
  readonly revision: string
}

/** The revision was loaded without a code cache: it was given none, or V8 has rejected it. Said at each such load. */
export interface Uncached {
  readonly type: 'uncached'
  readonly revision: string
}

/** Result of running a revision's module scope. */
export interface Started {
  readonly type: 'started'
  readonly revision: string
  readonly result: StartResult
}

export type StartResult =
  | { readonly ok: true; readonly form: HandlerForm }
  | { readonly ok: false; readonly code: 'load-failed' | 'no-handler'; readonly message: string; readonly stack: string }

/** text: the response's head (JSON of ResponseHead); body: the response's body. */
export interface Answer {
  readonly type: 'answer'
  readonly invocation: number
  readonly start: HostStart
  readonly usage: PackedUsage
}

/**
 * The head of a response whose body streams behind it, as {@link StreamData} of this call. The call ends with {@link
 * AnswerEnd}, or with {@link Failed}: then its body breaks off. With status 101 it accepts a WebSocket: from here on both
 * directions of the call are messages, and `end` is a close frame. text: the response's head (JSON of ResponseHead).
 */
export interface AnswerHead {
  readonly type: 'answer-head'
  readonly invocation: number
  readonly start: HostStart
}

/** The end of a call whose head went ahead: its body is whole, and was sent. */
export interface AnswerEnd {
  readonly type: 'answer-end'
  readonly invocation: number
  readonly start: HostStart
  readonly usage: PackedUsage
}

/** What an invocation found in the host. */
export type HostStart = 'warm' | 'isolate-cold'

export interface Failed {
  readonly type: 'failed'
  readonly invocation: number
  readonly start: HostStart
  readonly usage: PackedUsage
  readonly outcome: FailedOutcome
  /** For the caller. */
  readonly detail: string
  /** For the function's log: message and stack in positions of the bundle. */
  readonly stack?: string
}

/** A line that a function wrote. text: the line. */
export interface Log {
  readonly type: 'log'
  readonly revision: string
  readonly level: LogLevel
  /** Absent for what the module scope wrote. */
  readonly id?: string
  /** How many promises that were rejected and that nobody awaits the line stands for. Absent: none. */
  readonly rejections?: number
}

/** A function fetches. text: JSON of the core's FetchHead; body: the request's body. */
export interface Fetch {
  readonly type: 'fetch'
  /** Number of the fetch on this connection. */
  readonly fetch: number
  readonly revision: string
  readonly id?: string
  /** The request's body comes behind, as {@link StreamData} of this fetch. */
  readonly streams?: true
}

/** The fetch is not needed any more, and its end neither. */
export interface FetchStop {
  readonly type: 'fetch-stop'
  readonly fetch: number
  /** What the host has counted of bodies that stream: only the rest is unclaimed. */
  readonly bytesOut: number
  readonly bytesIn: number
}

/**
 * A function opens a socket: raw TCP or TLS, or a WebSocket. text: JSON of the core's SocketTarget. Answered by
 * {@link SocketConnected} or {@link SocketClosed}; its bytes are {@link StreamData} of this socket.
 */
export interface SocketOpen {
  readonly type: 'socket-open'
  /** Number of the socket on this connection. */
  readonly socket: number
  readonly revision: string
  readonly id?: string
}

/** A connected socket without TLS is to speak it from here on. text: JSON of the core's TlsOptions. */
export interface StartTls {
  readonly type: 'start-tls'
  readonly socket: number
}

/** The socket is not needed any more: it is destroyed. Answered by {@link SocketClosed} if that is not on its way. */
export interface SocketStop {
  readonly type: 'socket-stop'
  readonly socket: number
}

/** What a revision used in the background, since the last such message. */
export interface Background {
  readonly type: 'background'
  readonly revision: string
  readonly cpuUs: number
  readonly egressBytesOut: number
  readonly egressBytesIn: number
  readonly sockets: number
  readonly socketUs: number
}

/** Where the CPU time of a host process went since it started, in µs. */
export interface HostCpu {
  /** All of it. */
  readonly processUs: number
  /** Of that, the event loop's, which runs no function code. */
  readonly loopUs: number
  /** Of that, the isolates', as their own clocks have it. */
  readonly isolatesUs: number
  /** Of the isolates': making them, up to the point where a function can be loaded. */
  readonly blanksUs: number
  /** Of the isolates': looking at their memory. */
  readonly memoryWatchUs: number
}

/** Periodically while there is work: what invocations under way have used so far, in case the host is lost. */
export interface Pulse {
  readonly type: 'pulse'
  readonly cpu: HostCpu
  /** Those that used something since the pulse before. */
  readonly underWay: ReadonlyArray<readonly [invocation: number, usage: PackedUsage]>
}

/** Invocations that have entered and have not answered: they wait for a timer or a fetch, and give back their slots. */
export interface Waiting {
  readonly type: 'waiting'
  readonly invocations: readonly number[]
}

/** Load of the host: ten times a second while it has work, once a second while it has none. */
export interface LoadReport {
  readonly type: 'load-report'
  /** Period that the figures cover, in ms. */
  readonly windowMs: number
  /** Of entries, from when they were ready to run until they ran, and their threads' waits for a core. */
  readonly runDelay: { readonly count: number; readonly p50Us: number; readonly p90Us: number; readonly p99Us: number }
  /**
   * Of that, the median of what was not the wait for earlier entries of the same function, in µs: what any other function would
   * find.
   */
  readonly sharedDelayUs: number
  /** The longest wait of the entries that wait now, in µs; 0 if none does. */
  readonly oldestWaitUs: number
  /** Invocations that have given their slots back and want to go on. */
  readonly resumed: number
  /** Isolates that are entered. */
  readonly entered: number
  /** Isolates with a function loaded. */
  readonly isolates: number
  /** Of these, those with background work. */
  readonly lingering: number
  /** Share of the time in which the event loop was busy, 0 to 1. */
  readonly loopUtilization: number
  /** The longest that the event loop was late, in ms. */
  readonly loopDelayMs: number
  /** CPU time of the process since it started. */
  readonly cpuUs: number
  /** Resident memory of the process. */
  readonly memoryBytes: number
}

/** A revision harms the process for good: its entry goes on although its isolate was disposed, or V8 gave up on the isolate. */
export interface Poisoned {
  readonly type: 'poisoned'
  readonly revision: string
  readonly why: 'stuck' | 'gave-up'
}

/** An entry of a revision has run for long, or one that had has ended: if the process dies, it may be the cause. */
export interface LongEntry {
  readonly type: 'long-entry'
  readonly revision: string
  readonly change: 1 | -1
}

/** A host that stood still for so long does not begin what it finds unread, in ms: the server may have taken it back. */
export const AWAY_MS = 1_000

/** The host stood still for {@link AWAY_MS} or more. Until it is answered by {@link Resume} it begins no invocation. */
export interface Away {
  readonly type: 'away'
  /** Number of the time, from 1. */
  readonly absence: number
}

/** The invocation was read after the host was away. It has not begun and will not. */
export interface Unbegun {
  readonly type: 'unbegun'
  readonly invocation: number
}

/** The isolate of a revision has taken much memory: if the system ends the process for want of it, it may be the cause. */
export interface Grown {
  readonly type: 'grown'
  readonly revision: string
  /** What it holds, in bytes. */
  readonly heldBytes: number
}

export type ToServer =
  | Away
  | Unbegun
  | Ready
  | CodeCacheMade
  | Uncached
  | Started
  | Answer
  | AnswerHead
  | AnswerEnd
  | Failed
  | Log
  | Fetch
  | FetchStop
  | SocketOpen
  | StartTls
  | SocketStop
  | StreamData
  | StreamCredit
  | StreamAbort
  | StreamJoin
  | Background
  | Pulse
  | Waiting
  | LoadReport
  | Poisoned
  | LongEntry
  | Grown
