/**
 * What crosses the boundary between a host process and a guest isolate: primitives only, never objects, functions or promises.
 * Structured values travel as JSON text; bodies as strings.
 */
import type { FunctionLimits, HandlerForm, HeaderList, LogLevel } from '@carpool/core'

/**
 * How a body string is to be read: `text` is Unicode text that is UTF-8 on the wire; `bytes` has one character, U+0000 to U+00FF,
 * for each byte; `none` is no body; of `stream` the bytes come behind, by {@link ENTRIES.streamData} or {@link SAYS.streamData}.
 */
export type BodyKind = 'none' | 'text' | 'bytes' | 'stream'

/** `load`: what a guest knows of its own function. */
export interface GuestOptions {
  readonly functionName: string
  readonly revision: string
  readonly handlerExport?: string
  readonly limits: FunctionLimits
  readonly env: Readonly<Record<string, string>>
  /**
   * `frozen`: within an entry the clock stands at the time at which the entry began, whatever its code reads it with;
   * `running`: it goes on. Default: frozen.
   */
  readonly clock?: 'frozen' | 'running'
  /** Whether there is WebAssembly. Default: false. */
  readonly webAssembly?: boolean
  /** Largest body of a response: what is longer does not leave the isolate. Default: no limit. */
  readonly maxBodyBytes?: number
}

/** `loaded`: what became of the module scope. Stacks are as V8 gives them, in positions of the bundle. */
export type LoadReport =
  | { readonly ok: true; readonly form: HandlerForm }
  | { readonly ok: false; readonly code: 'load-failed' | 'no-handler'; readonly message: string; readonly stack: string }

/** `invoke`: the request as the function sees it. */
export interface InvokeHead {
  readonly invocationId: string
  readonly method: string
  readonly url: string
  readonly headers: HeaderList
  readonly clientIp: string
}

export interface GuestFailure {
  readonly outcome: 'exception' | 'invalid-response'
  readonly message: string
  readonly stack: string
}

/** What `boot` returns: the ways into the guest. */
export interface GuestEntries {
  /**
   * `factory` is what the bundle's script evaluates to: called without arguments it runs the module scope and returns the
   * exports, or a promise of them if the module scope awaits.
   */
  load(options: string, factory: () => unknown): void
  /** One entry: `op` is one of {@link ENTRIES}, `kind` an index of {@link BODY_KINDS}. With 0 alone it does nothing. */
  dispatch(op: number, number?: number, text?: string, kind?: number, body?: string | Uint8Array<ArrayBuffer>): void
  /**
   * V8's news of promises. `isHandled` false: it was rejected and nobody awaits it, which ends with its `reason`; true: of one of
   * those it is not so any more. An entry that has rejected some ends with {@link ENTRIES.settleRejections}.
   */
  rejected(isHandled: boolean, promise: object, reason?: unknown): void
  /** Called in the first isolate of a process, before V8's code cache is made of what has been compiled. */
  warmUp(): void
}

/** Operations of entries, and what comes with them. */
export const ENTRIES = {
  /** The number of the invocation, an {@link InvokeHead} and a body. */
  invoke: 1,
  /**
   * The client left or the time is up: aborts the `request.signal` of the invocation of that number; its answer no longer
   * counts.
   */
  cancel: 2,
  /** The number of the timer. */
  fireTimer: 3,
  /** The number of the fetch, a FetchResult and a body. */
  settleFetch: 4,
  /** Nothing: promises that the entry before has rejected have nobody who awaits them. Part of that entry. */
  settleRejections: 5,
  /** Nothing: the entry before has run with all its microtasks, and has said {@link SAYS.awaitEnd}. Part of that entry. */
  endEntry: 6,
  /**
   * Bytes of a stream: its number, and as kind its owner with {@link STREAM_FLAGS}; the bytes as `body`, as an array of bytes
   * if there is room for that, and they are of no message. With `end` of a WebSocket the text is JSON of its close code and
   * reason.
   */
  streamData: 7,
  /** So much more may be sent: the number of the stream, and as kind its owner with the bytes times {@link CREDIT_UNIT}. */
  streamCredit: 8,
  /**
   * One direction of a stream has ended early: its number, and as kind its owner with {@link STREAM_FLAGS.received} if nobody
   * takes what the guest sends; else what came breaks off. The text says why.
   */
  streamAbort: 9,
  /** The number of the fetch and a FetchResult: its body streams behind it, and {@link ENTRIES.settleFetch} ends it. */
  fetchHead: 10,
  /** The number of the socket, and a ConnectedSocket. */
  socketConnected: 11,
  /** The number of the socket, and a SocketEnd. */
  socketClosed: 12,
  /** An {@link InvokeHead}: the handler is called with that request, and nothing that the guest does from then on leaves it. */
  rehearse: 13,
} as const

/**
 * What the guest says, and what comes with it: up to three numbers and two texts. What it says waits for the host, and gives
 * nothing back.
 */
export const SAYS = {
  /** A {@link LoadReport}. */
  loaded: 1,
  /** The number of the invocation, the kind of the body; the head and the body. */
  answer: 2,
  /** The number of the invocation; a {@link GuestFailure}. */
  fail: 3,
  /**
   * The number of the invocation. Confirms a `cancel`, whether or not it is still known: the isolate gets round to its entries.
   */
  canceled: 4,
  /** The numbers of the invocation and of the timer, and the delay in ms. */
  startTimer: 5,
  /** The number of the timer. */
  stopTimer: 6,
  /**
   * The numbers of the invocation, or {@link NO_INVOCATION} for what the module scope does, and of the fetch, the kind of the
   * body; the head and the body.
   */
  startFetch: 7,
  /** The number of the fetch. */
  stopFetch: 8,
  /**
   * The number of the invocation, 1 if the line is of a promise that was rejected and that nobody awaits, and an index of
   * {@link LOG_LEVELS}; the line.
   */
  log: 9,
  /** The number of the invocation; the head of its answer, whose body streams behind it. */
  answerHead: 10,
  /** The number of the invocation: the body of its answer is whole. */
  endAnswer: 11,
  /**
   * The numbers of the stream and of the invocation that sends, and its owner with {@link STREAM_FLAGS}; text and bytes as in
   * {@link ENTRIES.streamData}.
   */
  streamData: 12,
  /** The number of the stream, how many bytes of it were taken, and its owner. */
  streamCredit: 13,
  /**
   * The number of the stream, 0, and its owner, with {@link STREAM_FLAGS.received} if the guest takes no more of what comes; else
   * what it sends breaks off. The text says why.
   */
  streamAbort: 14,
  /**
   * The numbers of two streams, and their owners, of which that of the second times {@link CREDIT_UNIT}; as text, how many
   * bytes have come by the first. What comes by it goes out by the second without coming here, until it ends, which the guest
   * is told. If more is on its way to the guest, nothing comes of this: it is said again then.
   */
  joinStreams: 15,
  /** The numbers of the invocation and of the socket; a SocketTarget. */
  openSocket: 16,
  /** The number of the socket; TlsOptions. */
  startTls: 17,
  /** The number of the socket. */
  stopSocket: 18,
  /** Nothing, and not for the host: the addon calls with {@link ENTRIES.endEntry} when the entry has run. */
  awaitEnd: 19,
} as const

/** Functions that the guest gets to be booted. User code reaches none of them. */
export interface GuestBridge {
  /** Says one of {@link SAYS}. */
  readonly say: (op: number, a: number, b: number, c: number, text: string, body: string | Uint8Array) => void
  /**
   * Blocks until the host has heard what was said before, so that it never piles up. Returns for how many ms the guest must
   * leave the host alone: not 0 when several guests together keep the host from its other work.
   */
  readonly drain: () => number
  /**
   * Runs the script of a library, numbered from 1, and gives what the function returns that it evaluates to. One with a second
   * parameter is given the addon's native functions.
   */
  readonly library: (number: number, require: (number: number) => unknown) => unknown
  /** The addon's: fills the bytes from there on with random bytes of the system. Returns where it stopped. */
  readonly random: (bytes: Uint8Array, at: number) => number
}

/** Between the scripts of the runtime where they are one text: the core, and the libraries in the order of their numbers. */
const SCRIPT_MARK = '\n//# carpool: the next script\n'

export function joinScripts(scripts: readonly string[]): string {
  return scripts.join(SCRIPT_MARK)
}

export function splitScripts(text: string): string[] {
  return text.split(SCRIPT_MARK)
}

export const BODY_KINDS = ['none', 'text', 'bytes', 'stream'] as const satisfies readonly BodyKind[]
/** What streams belong to, and have their numbers of. */
export const STREAM_OWNERS = ['call', 'fetch', 'socket'] as const
/** Index of a stream's owner, in what comes with it. */
export const OF_CALL = 0
export const OF_FETCH = 1
export const OF_SOCKET = 2
/** The bits of the owner. */
export const OWNER_MASK = 3
/**
 * Behind the owner, as bits: nothing comes behind it; it is of a message of text or of bytes, which goes on in the next; it is
 * about what was received.
 */
export const STREAM_FLAGS = { end: 4, text: 8, bytes: 16, more: 32, received: 64 } as const
/** What stands beside an owner is a multiple of this. */
export const CREDIT_UNIT = 4
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly LogLevel[]

export const NO_INVOCATION = 0
