import { CarpoolError } from './errors.ts'
import type { FunctionLimits } from './limits.ts'

const NAME_PATTERN = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Checks a function's name: a DNS label, so that it can be a path segment or a host name.
 * @throws CarpoolError `invalid-name`
 */
export function checkFunctionName(name: string): string {
  if (NAME_PATTERN.test(name)) return name
  const shown = name.length > 80 ? `${name.slice(0, 80)}…` : name
  throw new CarpoolError(
    'invalid-name',
    `${JSON.stringify(shown)} is no function name: use 1 to 63 of a-z, 0-9 and "-", with no "-" at either end.`,
  )
}

/** Most characters of the names and values of a function's `env` together: every isolate of the function holds them. */
const MAX_ENV_LENGTH = 256 * 1024

/** @throws CarpoolError `invalid-config` if an `env` is larger than any function's may be */
export function checkEnv(env: Readonly<Record<string, string>>): void {
  const length = Object.entries(env).reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (length <= MAX_ENV_LENGTH) return
  throw new CarpoolError('invalid-config', `env has ${length} characters together; the limit is ${MAX_ENV_LENGTH}.`)
}

/** How a handler is called: with a web `Request`, or with an event as AWS Lambda does. */
export type HandlerForm = 'fetch' | 'lambda'

/** What a deploy sends besides the code. */
export interface RevisionConfig {
  /** Export that holds the handler; absent: `default`, else `handler`. */
  readonly handlerExport?: string
  readonly limits: FunctionLimits
  /** Given to the handler as `env`, and readable as `process.env`. */
  readonly env: Readonly<Record<string, string>>
  /** Version of the secrets that it gets with `env`, which changes when one of them does. Absent or 0: it never had any. */
  readonly secretsVersion?: number
  /**
   * Hosts that it may fetch from, as `checkHostList` of packages/egress writes them. Absent: all that the server permits; empty:
   * none.
   */
  readonly egress?: readonly string[]
}

/** One immutable deployed version of a function. */
export interface Revision extends RevisionConfig {
  /** Content hash of code and configuration: 16 hex digits. */
  readonly id: string
  readonly functionName: string
  readonly owner: string
  readonly form: HandlerForm
  /** ISO 8601. */
  readonly createdAt: string
  readonly codeBytes: number
  /** SHA-256 of the bundle, in hex: its name on disk. */
  readonly codeHash: string
}
