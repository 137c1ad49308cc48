import type { ConnectedSocket, SocketEnd, SocketTarget, TlsOptions } from './socket.ts'

/** What whoever opens a socket hears of it. */
export interface SocketEvents {
  /** It is connected, or speaks TLS now after {@link OpenSocket.startTls}. */
  connected(socket: ConnectedSocket): void
  data(bytes: Uint8Array<ArrayBuffer>): void
  /** The peer sends nothing more. */
  ended(): void
  /** There is room again for what is to be sent. */
  room(): void
  /** It has ended, connected or not. Said once, and last; not after {@link OpenSocket.stop}. */
  closed(end: SocketEnd): void
}

/** A function's socket. What is sent in one entry leaves together, at its end. */
export interface OpenSocket {
  /** Whether whoever sends should wait for {@link SocketEvents.room}. */
  readonly isFull: boolean
  /** Sends a copy of the bytes. */
  send(bytes: Uint8Array): void
  /** Nothing is sent behind what was. */
  end(): void
  /** So many bytes of what came were passed on: as many more may come. */
  took(bytes: number): void
  /**
   * Speaks TLS from here on.
   * @throws TypeError if more was sent before than could leave yet, or something that came before was not taken
   */
  startTls(options: TlsOptions): void
  /** It is not needed any more. */
  stop(): void
}

/**
 * What the modules of Node.js in a function's bundle need of the runtime around it, which calls the bundle's factory with it.
 * Both are the function's own: whatever it does with this, it does to itself.
 */
export interface NodeSupport {
  /** Has `run` called when the synchronous part of an entry is over, before the microtasks that it has queued. */
  afterTurn(run: () => void): void
  /**
   * Has `run` called once this entry has run with all its microtasks, before another one begins. What such a `run` asks for
   * has an entry of its own.
   */
  afterEntry(run: () => void): void
  /** What continuations of promises made now will find when they run. */
  carried(): unknown
  carry(value: unknown): void
  /** From now on timers carry along what was carried when they were started, and every entry begins with nothing. */
  carryOverTimers(): void
  /** `[1, state, result]` of a promise, `[2, target, handler]` of a proxy, `[3, entries, are pairs]` of an iterator. */
  inside(value: unknown): readonly [kind: number, unknown, unknown] | undefined
  /** The Blob that a URL was made of; undefined if there is none. */
  resolveObjectURL(url: string): unknown
  /** A module that is a library of the runtime. `environment`: what it needs of the bundle's other modules. */
  module(name: 'crypto' | 'zlib', environment: object): unknown
  /**
   * Compiles the WebAssembly files of the bundle, each in base64 under its name, and puts `WebAssembly` into the world. A
   * bundle that has such files begins with this: it can be done once, and only while module scope runs.
   * @throws WebAssembly.CompileError, or RangeError if one does not fit into the memory limit
   */
  webAssembly(files: Readonly<Record<string, string>>): Readonly<Record<string, object>>
  /**
   * From now on continuations are counted to the call that made them, and not to the one whose entry lets them go on. Modules
   * that open sockets call it when they are loaded: calls may wait for a socket before it is opened.
   */
  tellCallsApart(): void
  /** Opens a socket, as the host's address policy lets it. @throws Error if too many are open */
  openSocket(target: SocketTarget, events: SocketEvents): OpenSocket
  /** Whether the body of a request of the web comes bit by bit. */
  streams(request: object): boolean
  /** Sets who makes handlers of servers of `node:http`. */
  adaptServers(adapt: ServerAdapter): void
}

/**
 * Gives a handler of the form `fetch(request)` for what a module exports, if that is an app or a server of `node:http`, or for a
 * server that was made to listen. `isLast`: nothing else was found, so a server that does not listen yet will do.
 */
export type ServerAdapter = (exported: unknown, isLast: boolean) => ((request: never) => unknown) | undefined
