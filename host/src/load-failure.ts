import type { FailedOutcome } from '@carpool/core'

/** Why a revision could not be brought up in an isolate. */
export class LoadFailure extends Error {
  override readonly name = 'LoadFailure'
  readonly outcome: FailedOutcome
  readonly code: 'load-failed' | 'no-handler'
  /** Stack of the user's error, in positions of the bundle; empty if there was none. */
  readonly guestStack: string

  constructor(
    message: string,
    options: { outcome?: FailedOutcome; code?: 'load-failed' | 'no-handler'; guestStack?: string } = {},
  ) {
    super(message)
    this.outcome = options.outcome ?? 'load-failed'
    this.code = options.code ?? 'load-failed'
    this.guestStack = options.guestStack ?? ''
  }
}
