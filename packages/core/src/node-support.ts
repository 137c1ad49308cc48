/**
 * What the modules of Node.js in a function's bundle need of the runtime around it, which calls the bundle's factory with it. Both
 * are the function's own: whatever it does with this, it does to itself.
 */
export interface NodeSupport {
  /** Has `run` called when the synchronous part of an entry is over, before the microtasks that it has queued. */
  afterTurn(run: () => void): void
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
  /** Sets who makes handlers of servers of `node:http`. */
  adaptServers(adapt: ServerAdapter): void
}

/**
 * Gives a handler of the form `fetch(request)` for what a module exports, if that is an app or a server of `node:http`, or for a
 * server that was made to listen. `isLast`: nothing else was found, so a server that does not listen yet will do.
 */
export type ServerAdapter = (exported: unknown, isLast: boolean) => ((request: never) => unknown) | undefined
