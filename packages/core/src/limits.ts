import { CarpoolError } from './errors.ts'

/** What one function may use. */
export interface FunctionLimits {
  /** Heap limit of the function's isolate, in MiB. Not a reservation: an isolate takes what its code uses. */
  readonly memoryMb: number
  /** Most CPU time of one invocation, in ms. What it leaves behind in timers and promises has the same limit for each entry. */
  readonly cpuMs: number
  /** Longest time from the start of an invocation to its answer, or to the head of an answer that streams, in ms. */
  readonly wallMs: number
  /** Longest time that a streamed answer or WebSocket may stay open after its head, in ms; 0: no limit. */
  readonly streamMs: number
  /** Longest time in which no byte of a streamed request, streamed answer or WebSocket comes or goes, in ms; 0: no limit. */
  readonly idleMs: number
  /** Most invocations of the function at the same time. */
  readonly concurrency: number
}

/**
 * Most headers of a response, and most bytes of their names and values together: what most clients and proxies take at most.
 * Checked in the isolate, and again by the server, which takes nothing on trust that comes from where user code ran.
 */
export const RESPONSE_HEADER_LIMITS = { count: 100, bytes: 64 * 1024 } as const

/** Fetches that one invocation may have open. Counted where it runs, and again where the connections are made. */
export const MAX_FETCHES_PER_INVOCATION = 1_000

/**
 * Bodies of requests that the fetches of one isolate may have under way, in bytes; more where a single one may be so large.
 * Its host counts what is open; the isolate counts what one entry sends, so that no more is copied out of it at once.
 */
export const FETCH_BODIES_BYTES = 32 * 1024 * 1024

/** Sockets and WebSockets that the isolate of a function may have open to others. Counted there, and again in its host. */
export const MAX_SOCKETS_PER_GUEST = 500

/** Longest response head as JSON, in UTF-16 units: the largest one with every character escaped. A longer one is not read. */
export const MAX_RESPONSE_HEAD = RESPONSE_HEADER_LIMITS.bytes * 6 + RESPONSE_HEADER_LIMITS.count * 8 + 100

/** How far the sender of a stream may be ahead of its receiver, in each direction, in bytes. */
export const STREAM_WINDOW_BYTES = 256 * 1024
/** Most bytes of a stream that are passed on at once. */
export const STREAM_PART_BYTES = 64 * 1024
/** What each message of a WebSocket counts in the window besides its bytes: empty ones are not free, however many come. */
export const STREAM_MESSAGE_BYTES = 128

interface LimitRange {
  readonly default: number
  readonly min: number
  readonly max: number
  readonly unit: string
}

/** Defaults and accepted ranges. 8 MiB is the least that isolated-vm accepts. */
export const LIMIT_RANGES: { readonly [K in keyof FunctionLimits]: LimitRange } = {
  memoryMb: { default: 256, min: 8, max: 4096, unit: 'MiB' },
  cpuMs: { default: 1_000, min: 5, max: 900_000, unit: 'ms' },
  wallMs: { default: 30_000, min: 10, max: 900_000, unit: 'ms' },
  streamMs: { default: 3_600_000, min: 0, max: 86_400_000, unit: 'ms' },
  idleMs: { default: 300_000, min: 0, max: 86_400_000, unit: 'ms' },
  concurrency: { default: 10_000, min: 1, max: 100_000, unit: 'invocations' },
}

/** Fills in the defaults and checks each limit. @throws CarpoolError `invalid-config`, naming the limit and its range. */
export function resolveLimits(given: Partial<FunctionLimits>): FunctionLimits {
  const resolve = (name: keyof FunctionLimits): number => {
    const { default: fallback, min, max, unit } = LIMIT_RANGES[name]
    const value = given[name] ?? fallback
    if (!Number.isInteger(value) || value < min || value > max) {
      throw new CarpoolError(
        'invalid-config',
        `${name} must be a whole number from ${min} to ${max} ${unit}, not ${String(value)}.`,
      )
    }
    return value
  }
  return {
    memoryMb: resolve('memoryMb'),
    cpuMs: resolve('cpuMs'),
    wallMs: resolve('wallMs'),
    streamMs: resolve('streamMs'),
    idleMs: resolve('idleMs'),
    concurrency: resolve('concurrency'),
  }
}
