interface Refusal {
  /** Why there is none, and what to use instead: the end of a sentence about the function. */
  readonly why: string
  /** What the module gives instead of what throws. */
  readonly values?: Readonly<Record<string, unknown>>
}

const NO_SOCKETS = 'it has no sockets of this kind; use fetch, node:net or node:tls'
const NO_PROCESSES = 'it has no processes'
const NO_INSIDE = 'V8 is shared with others'

/** Built-in modules that can be imported and do nothing: whatever is called of them throws. */
export const REFUSED: Readonly<Record<string, Refusal>> = {
  'child_process': { why: NO_PROCESSES },
  'cluster': { why: NO_PROCESSES, values: { isMaster: true, isPrimary: true, isWorker: false, workers: {} } },
  'dgram': { why: NO_SOCKETS },
  'domain': { why: 'domains are deprecated; use AsyncLocalStorage of node:async_hooks' },
  '_tls_common': { why: NO_SOCKETS },
  '_tls_wrap': { why: NO_SOCKETS },
  'ffi': { why: 'native code cannot run in it' },
  'http2': { why: NO_SOCKETS },
  'inspector': { why: NO_INSIDE },
  'inspector/promises': { why: NO_INSIDE },
  'repl': { why: 'it has no terminal' },
  'sea': { why: 'it is no program of its own' },
  'sqlite': { why: 'it has no disk; use a database that answers over HTTP' },
  'test': { why: 'tests run where the code is written' },
  'test/reporters': { why: 'tests run where the code is written' },
  'trace_events': { why: NO_INSIDE },
  'v8': { why: NO_INSIDE },
  'wasi': { why: 'it has no file system' },
}
