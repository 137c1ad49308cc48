import { isV8Helper, type ThreadReading } from '../lib/thread-table.ts'

/**
 * What the CPU time of a call is divided into. Both tables below are to be changed with the code: a file that no rule names
 * counts to whoever called it, and what nobody of ours called counts to the rest.
 */

export type ProcessName = 'server' | 'host'

/** Functions of some files, by the name of a file from the root of the checkout, or `node:…`. */
export interface StageRule {
  readonly file: RegExp
  /** Default: all that the file has. */
  readonly functions?: RegExp
  readonly stage: string
}

export interface StageTable {
  /** Our own files. The nearest of them on the stack decides. The first rule that fits counts. */
  readonly own: readonly StageRule[]
  /** What Node.js and dependencies do where none of our files is on the stack. */
  readonly foreign: readonly StageRule[]
  readonly garbage: string
  /**
   * What C++ does in the event loop without JavaScript on the stack: polling, reading sockets, parsing HTTP, handing results over
   * between threads.
   */
  readonly loop: string
  /** Everything else, such as timers, microtasks and ends of writes. */
  readonly rest: string
  /** All of them, in the order of the table. */
  readonly stages: readonly string[]
}

const NODE_HTTP = /^node:(?:_http_|internal\/http)/
/**
 * The server reads no other stream in JavaScript: connections of clients go straight to the parser. A host reads only its socket.
 */
const READ_SOCKET = { file: /^node:internal\/stream_base_commons$/, functions: /^onStreamRead$/ }

export const STAGES: Readonly<Record<ProcessName, StageTable>> = {
  server: {
    own: [
      {
        file: /^packages\/gateway\/src\/(?:response-encoder|whole-response|server-timing|reserved-headers|unread-answers|hardening\/slow-clients)\.ts$/,
        stage: 'answer',
      },
      { file: /^packages\/(?:gateway|registry)\//, stage: 'gateway' },
      { file: /^packages\/server\/src\/hops\.ts$/, stage: 'gateway' },
      { file: /^packages\/wire\//, stage: 'wire' },
      { file: /^packages\/fleet\/src\/(?:pool\/)?(?:host-connection|host-process|pending-replies|response-head)/, stage: 'wire' },
      { file: /^packages\/(?:admission|fleet|containment)\//, stage: 'placement' },
      { file: /^packages\/server\/src\/(?:invoke|fleet-policy)\.ts$/, stage: 'placement' },
      { file: /^packages\/(?:metering|ledger|metrics|telemetry|billing|sqlite|storage)\//, stage: 'record' },
      { file: /^packages\/server\/src\/(?:host-reports\/|usage-journal|function-journal|known-revisions)/, stage: 'record' },
    ],
    foreign: [
      { file: /^node:_http_outgoing$/, stage: 'answer' },
      {
        file: /^node:_http_server$/,
        functions: /^(?:resOnFinish|onServerResponseClose|clearIncoming|detachSocket)$/,
        stage: 'answer',
      },
      { file: NODE_HTTP, stage: 'gateway' },
      { file: /^node_modules\//, stage: 'gateway' },
      { ...READ_SOCKET, stage: 'wire' },
    ],
    garbage: 'garbage collection',
    loop: 'event loop',
    rest: 'rest',
    stages: ['gateway', 'placement', 'wire', 'record', 'answer', 'garbage collection', 'event loop', 'rest'],
  },
  host: {
    own: [
      { file: /^packages\/wire\//, stage: 'wire' },
      { file: /^host\/src\/(?:process|send)\.ts$/, stage: 'wire' },
      { file: /^host\//, stage: 'invocations' },
      { file: /^packages\/(?:isolate|isolate-pool|metering|runtime|containment)\//, stage: 'invocations' },
    ],
    foreign: [{ ...READ_SOCKET, stage: 'wire' }],
    garbage: 'garbage collection',
    loop: 'event loop',
    rest: 'rest',
    stages: ['wire', 'invocations', 'garbage collection', 'event loop', 'rest'],
  },
}

/** What is there for the profile alone, and so is in no stage. */
export const PROFILER = /(?:^|\/)bench\/src\/hop\/|^node:inspector/

/** What a thread does, by its process and its name. In the order of the table. */
export const THREAD_ROLES = {
  server: ['main', 'ledger', 'egress', 'V8 helpers', 'others'],
  host: ['main', 'isolates', 'V8 helpers', 'others'],
} as const satisfies Readonly<Record<ProcessName, readonly string[]>>
export type ThreadRole = (typeof THREAD_ROLES)[ProcessName][number]

/** Threads of Node.js itself, besides V8's. */
const NODE_THREAD = /^libuv-worker$|^SignalInspector$/

export function roleOf(process: ProcessName, thread: Pick<ThreadReading, 'name' | 'isMain'>): ThreadRole {
  if (thread.isMain) return 'main'
  if (isV8Helper(thread)) return 'V8 helpers'
  if (NODE_THREAD.test(thread.name)) return 'others'
  // isolated-vm gives its threads no name, so that they have that of the thread that made them.
  if (process === 'host') return 'isolates'
  if (thread.name === 'carpool-ledger') return 'ledger'
  return thread.name === 'carpool-egress' ? 'egress' : 'others'
}

/** What a call may cost, in µs of CPU of all threads together. */
export type BudgetName = 'server' | 'host' | 'ledger'
export const BUDGETS: Readonly<Record<BudgetName, number>> = { server: 18, host: 10, ledger: 2 }

/** What a thread's time counts to: the host is with its isolates, the server without its ledger. */
export function budgetOf(process: ProcessName, role: ThreadRole): BudgetName {
  return role === 'ledger' ? 'ledger' : process
}
