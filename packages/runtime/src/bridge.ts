/**
 * What crosses the boundary between a host process and a guest isolate: primitives only, never objects, functions or promises.
 * Structured values travel as JSON text; bodies as strings.
 */
import type { FunctionLimits, HandlerForm, HeaderList, LogLevel } from '@carpool/core'

/**
 * How a body string is to be read: `text` is Unicode text that is UTF-8 on the wire; `bytes` has one character, U+0000 to U+00FF,
 * for each byte; `none` is no body.
 */
export type BodyKind = 'none' | 'text' | 'bytes'

/** `load`: what a guest knows of its own function. */
export interface GuestOptions {
  readonly functionName: string
  readonly revision: string
  readonly handlerExport?: string
  readonly limits: FunctionLimits
  readonly env: Readonly<Record<string, string>>
  /**
   * `frozen`: within an entry the clock stands at the time at which the entry began, whatever its code reads it with; `running`: it goes on.
   * Default: frozen.
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

/** Calls into the guest. Each is one entry of the isolate; `invocation` is the host's number for the invocation. */
export interface GuestEntries {
  /**
   * `factory` is what the bundle's script evaluates to: called without arguments it runs the module scope and returns the exports, or a
   * promise of them if the module scope awaits.
   */
  load(options: string, factory: () => unknown): void
  invoke(invocation: number, head: string, bodyKind: BodyKind, body: string): void
  /** The client left or the time is up: aborts the invocation's `request.signal`; its answer no longer counts. */
  cancel(invocation: number): void
  fireTimer(timer: number): void
  settleFetch(fetch: number, result: string, bodyKind: BodyKind, body: string): void
  /**
   * How long each of the last `count` entries took, in ns, between commas; what is left over of one counts to it until the next begins.
   * Empty if that was not measured. In CPU time if the host gives a clock of it; else in time, but for the first time that it is asked.
   */
  spans(count: number): string
  /** Does nothing, but counts as an entry for `spans`. */
  measure(): void
}

/** Calls out of the guest. All return at once and give nothing back, but for `entropy` and `drain`. */
export interface GuestBridge {
  loaded(report: string): void
  answer(invocation: number, head: string, bodyKind: BodyKind, body: string): void
  fail(invocation: number, failure: string): void
  /** Confirms a `cancel`, whether or not the invocation is still known: the isolate gets round to its entries. */
  canceled(invocation: number): void
  startTimer(invocation: number, timer: number, delayMs: number): void
  stopTimer(timer: number): void
  /** `invocation` is {@link NO_INVOCATION} for what the module scope does. */
  startFetch(invocation: number, fetch: number, head: string, bodyKind: BodyKind, body: string): void
  stopFetch(fetch: number): void
  log(invocation: number, level: LogLevel, text: string): void
  /** Blocks until the host has answered with {@link ENTROPY_BYTES} random bytes, as a `bytes` string. */
  entropy(): string
  /**
   * Blocks until the host has worked off the calls before it, so that they never pile up. Returns for how many ms the guest must leave the
   * host alone: not 0 when several guests together keep the host from its other work.
   */
  drain(): number
  /** An entry begins: a function of the CPU clock, which is no call of the host; absent where there is none. */
  readonly begin?: () => void
  /** All entries have run. @returns what each took, in ns of CPU, between commas; empty if that is not known */
  readonly end?: () => string
}

export const NO_INVOCATION = 0
export const ENTROPY_BYTES = 4096
