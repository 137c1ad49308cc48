import type { FailedOutcome } from '@carpool/core'

/** Why a revision could not be brought up in an isolate. */
export class LoadFailure extends Error {
  override readonly name = 'LoadFailure'
  readonly outcome: FailedOutcome
  readonly code: 'load-failed' | 'no-handler'
  /** Stack of the user's error, in positions of the bundle; empty if there was none. */
  readonly guestStack: string
  #cpuNs = 0

  constructor(
    message: string,
    options: { outcome?: FailedOutcome; code?: 'load-failed' | 'no-handler'; guestStack?: string } = {},
  ) {
    // isolated-vm says where it was when the compiler gave up, which tells an author nothing.
    super(message.replaceAll(' [<isolated-vm>:0:0]', ''))
    this.outcome = options.outcome ?? 'load-failed'
    this.code = options.code ?? 'load-failed'
    this.guestStack = options.guestStack ?? ''
  }

  /** It took so much CPU to fail. */
  charge(cpuNs: number): void {
    this.#cpuNs += cpuNs
  }

  /** What it took, for the first that asks: several may have waited for the one start. */
  takeCpuNs(): number {
    const cpuNs = this.#cpuNs
    this.#cpuNs = 0
    return cpuNs
  }
}

export function asLoadFailure(cause: unknown): LoadFailure {
  return cause instanceof LoadFailure
    ? cause
    : new LoadFailure('The function could not be loaded.', { guestStack: String(cause) })
}
