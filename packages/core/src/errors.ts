/** Whose fault an error is: the caller's request, the function's author, or Carpool itself. */
export type Fault = 'caller' | 'function' | 'carpool'

interface ErrorEntry {
  /** HTTP status with which the error is answered. */
  readonly status: number
  readonly title: string
  readonly fault: Fault
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean
}

/**
 * Every error that Carpool answers with; there are no others. What happens to user code while it runs is not in this table:
 * that is an {@link Outcome}.
 */
export const ERRORS = {
  'bad-request': entry(400, 'The request is not valid', 'caller'),
  'unauthorized': entry(401, 'A valid token is required', 'caller'),
  'forbidden': entry(403, 'The token does not allow this', 'caller'),
  'not-found': entry(404, 'There is no such function', 'caller'),
  'route-not-found': entry(404, 'There is nothing at this address', 'caller'),
  'token-not-found': entry(404, 'There is no such token', 'caller'),
  'secret-not-found': entry(404, 'There is no such secret', 'caller'),
  'request-timeout': entry(408, 'The request took too long to arrive', 'caller'),
  'name-taken': entry(409, 'The name belongs to another owner', 'caller'),
  'body-too-large': entry(413, 'The request body is too large', 'caller'),
  'headers-too-large': entry(431, 'The request headers are too large', 'caller'),
  'invalid-name': entry(400, 'The function name is not valid', 'caller'),
  'invalid-config': entry(400, 'The configuration is not valid', 'caller'),
  'invalid-setting': entry(400, 'A setting is not valid', 'caller'),
  'usage': entry(400, 'The command line is not valid', 'caller'),
  'entry-not-found': entry(422, 'There is no entry file to deploy', 'caller'),
  'bundle-failed': entry(422, 'The function does not build', 'function'),
  'bundle-empty': entry(422, 'The bundle is empty', 'function'),
  'bundle-too-large': entry(413, 'The bundle is too large', 'function'),
  'no-handler': entry(422, 'The function exports no handler', 'function'),
  'load-failed': entry(422, 'The function does not load', 'function'),
  'too-many-requests': entry(429, 'The function is at its concurrency limit', 'caller', true),
  'loop-detected': entry(508, 'Functions call each other in a loop', 'caller'),
  'function-disabled': entry(503, 'The function is disabled', 'function'),
  'saturated': entry(503, 'The server is at its concurrency limit', 'carpool', true),
  'no-host': entry(503, 'No host process is ready', 'carpool', true),
  'ledger-unavailable': entry(503, 'Usage cannot be recorded', 'carpool', true),
  'draining': entry(503, 'The server is shutting down', 'carpool', true),
  'unreachable': entry(503, 'The server does not answer', 'carpool', true),
  'sandbox-unavailable': entry(500, 'A layer of the sandbox is not available', 'carpool'),
  'platform-unsupported': entry(500, 'Carpool does not run on this platform', 'carpool'),
  'data-unusable': entry(500, 'Stored data cannot be used', 'carpool'),
  'internal': entry(500, 'Carpool failed', 'carpool'),
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof ERRORS

function entry(status: number, title: string, fault: Fault, retryable = false): ErrorEntry {
  return { status, title, fault, retryable }
}

/** The one error class of Carpool. Match on `code`, never on `message`. */
export class CarpoolError extends Error {
  override readonly name = 'CarpoolError'
  readonly code: ErrorCode

  /**
   * @param detail what is wrong, where, and the limit that was passed; shown to the caller, so it holds nothing of the host.
   */
  constructor(code: ErrorCode, detail: string, options?: ErrorOptions) {
    super(detail, options)
    this.code = code
  }

  get status(): number {
    return ERRORS[this.code].status
  }

  /** Turns anything caught into a CarpoolError; what is not one already becomes `internal`, with the original as `cause`. */
  static from(cause: unknown): CarpoolError {
    return cause instanceof CarpoolError
      ? cause
      : new CarpoolError('internal', 'An unexpected fault; the server log has more.', { cause })
  }
}

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code)
}
