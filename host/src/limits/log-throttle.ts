import { type Holder, SharedPool } from '@carpool/core'

export interface LogLimits {
  readonly lines: number
  readonly bytes: number
  /** Length of a window, in ms. */
  readonly windowMs: number
}

export const LOG_LIMITS: LogLimits = { lines: 1000, bytes: 1024 * 1024, windowMs: 10_000 }

/** How many times the limits of a function all owners have together for what they log beyond them. */
const SHARED = 8

/** What a function may log of what its owner may, in windows of their own. */
export interface LogShare {
  /** Takes a line, unless the share is used up. */
  take(bytes: number, nowMs: number): boolean
  /** How long until there is more of it, in ms. */
  remainingMs(nowMs: number): number
}

const NO_OTHERS: LogShare = { take: () => true, remainingMs: () => 0 }

/** Lines and bytes of one owner in a window. */
interface OwnerWindow {
  startMs: number
  lines: number
  bytes: number
}

/**
 * What of the logs of a host may pass, shared out among owners. All functions of an owner together may log what one function
 * may, so that an owner of one is never held back here. What owners log beyond that in a window comes out of a pool.
 */
export class LogShares {
  readonly #limits: LogLimits
  readonly #owners = new Map<string, OwnerWindow>()
  #windowStartMs = Number.NEGATIVE_INFINITY
  #lines = new SharedPool(0)
  #bytes = new SharedPool(0)

  constructor(limits: LogLimits = LOG_LIMITS) {
    this.#limits = limits
  }

  /** Whether a line of the holder may pass. */
  take(holder: Holder, bytes: number, nowMs: number): boolean {
    const { lines: maxLines, bytes: maxBytes } = this.#limits
    const owner = this.#windowOf(holder.owner, nowMs)
    if (owner.lines + 1 <= maxLines && owner.bytes + bytes <= maxBytes) {
      owner.lines++
      owner.bytes += bytes
      return true
    }
    this.#renew(nowMs)
    if (!this.#bytes.permits(holder, bytes) || !this.#lines.tryTake(holder, 1)) return false
    return this.#bytes.tryTake(holder, bytes)
  }

  /** What a function may log of it. */
  of(holder: Holder): LogShare {
    return {
      take: (bytes, nowMs) => this.take(holder, bytes, nowMs),
      remainingMs: (nowMs) => this.#remainingMs(holder, nowMs),
    }
  }

  /** Until the window of the owner ends, or that of the pool. */
  #remainingMs({ owner }: Holder, nowMs: number): number {
    const startMs = Math.min(this.#owners.get(owner)?.startMs ?? nowMs, this.#windowStartMs)
    return Math.max(0, startMs + this.#limits.windowMs - nowMs)
  }

  #windowOf(name: string, nowMs: number): OwnerWindow {
    let owner = this.#owners.get(name)
    if (owner === undefined) this.#owners.set(name, (owner = { startMs: nowMs, lines: 0, bytes: 0 }))
    if (nowMs - owner.startMs >= this.#limits.windowMs) {
      owner.startMs = nowMs
      owner.lines = owner.bytes = 0
    }
    return owner
  }

  #renew(nowMs: number): void {
    const { lines, bytes, windowMs } = this.#limits
    if (nowMs - this.#windowStartMs < windowMs) return
    this.#windowStartMs = nowMs
    // It is for one window, so an owner who is alone need not leave room for another, who has lines of his own.
    const options = { alonePortion: Number.POSITIVE_INFINITY }
    this.#lines = new SharedPool(SHARED * lines, options)
    this.#bytes = new SharedPool(SHARED * bytes, options)
  }
}

/**
 * What of a function's log may pass: so many lines and bytes in a window, which begins with the first line after the one before
 * it, and no more than its share of what its owner may log.
 */
export class LogBudget {
  readonly #limits: LogLimits
  readonly #share: LogShare
  #windowStartMs = Number.NEGATIVE_INFINITY
  #lines = 0
  #bytes = 0
  /** Whether a line of this window did not fit. */
  #isSpent = false
  /** Until when there is no more of the share. */
  #shareSpentUntilMs = Number.NEGATIVE_INFINITY
  /** Lines since the last report. */
  #dropped = 0
  /** What the last of them did not fit. */
  #droppedFor: 'limit' | 'share' = 'limit'

  constructor(limits: LogLimits = LOG_LIMITS, share: LogShare = NO_OTHERS) {
    this.#limits = limits
    this.#share = share
  }

  /**
   * Whether a line may pass. After one that does not fit none passes until there is more of what it did not fit, the limit or the
   * share, so that what passes has no gaps but at the end.
   */
  take(bytes: number, nowMs: number): boolean {
    const { lines: maxLines, bytes: maxBytes, windowMs } = this.#limits
    if (nowMs - this.#windowStartMs >= windowMs) {
      this.#windowStartMs = nowMs
      this.#lines = 0
      this.#bytes = 0
      this.#isSpent = false
    }
    this.#isSpent ||= this.#lines + 1 > maxLines || this.#bytes + bytes > maxBytes
    if (this.#isSpent) return this.#drop('limit')
    if (nowMs < this.#shareSpentUntilMs) return this.#drop('share')
    if (!this.#share.take(bytes, nowMs)) {
      this.#shareSpentUntilMs = nowMs + this.#share.remainingMs(nowMs)
      return this.#drop('share')
    }
    this.#lines++
    this.#bytes += bytes
    return true
  }

  /** How long until the window ends, in ms. */
  remainingMs(nowMs: number): number {
    return Math.max(0, this.#windowStartMs + this.#limits.windowMs - nowMs)
  }

  /** A line about those that were dropped since the last report; undefined if there were none. */
  report(): string | undefined {
    const dropped = this.#dropped
    if (dropped === 0) return undefined
    this.#dropped = 0
    const { lines, bytes, windowMs } = this.#limits
    const what = dropped === 1 ? '1 line was' : `${dropped} lines were`
    if (this.#droppedFor === 'share')
      return `… ${what} dropped: the functions of the owner log more than their share in ${windowMs / 1000} s`
    return `… ${what} dropped: the limit is ${lines} lines or ${bytes / 1024 ** 2} MiB in ${windowMs / 1000} s`
  }

  #drop(why: 'limit' | 'share'): false {
    this.#dropped++
    this.#droppedFor = why
    return false
  }
}

/**
 * Lets the log of one revision pass within its budget, and reports in one line, when the window ends, how many lines were
 * dropped.
 */
export class LogThrottle {
  readonly #budget: LogBudget
  readonly #report: (text: string, rejections: number) => void
  /** Rejections that lines were of which did not pass. */
  #rejections = 0
  #reportTimer: NodeJS.Timeout | undefined

  constructor(report: (text: string, rejections: number) => void, holder: Holder, shares: LogShares) {
    this.#report = report
    this.#budget = new LogBudget(LOG_LIMITS, shares.of(holder))
  }

  /** Whether a line may pass. `isRejection`: of a promise that nobody awaits, which is counted also if it does not. */
  take(text: string, isRejection = false): boolean {
    const nowMs = performance.now()
    const passes = this.#budget.take(Buffer.byteLength(text), nowMs)
    if (!passes && isRejection) this.#rejections++
    if (!passes) this.#reportTimer ??= setTimeout(() => this.close(), this.#budget.remainingMs(nowMs))
    return passes
  }

  /** Reports what was dropped, now. */
  close(): void {
    clearTimeout(this.#reportTimer)
    this.#reportTimer = undefined
    const report = this.#budget.report()
    if (report === undefined) return
    const rejections = this.#rejections
    this.#rejections = 0
    this.#report(report, rejections)
  }
}

/** The log throttles by revision: a new isolate has no new budget. */
export class LogThrottles {
  readonly #report: (revision: string, text: string, rejections: number) => void
  readonly #throttles = new Map<string, LogThrottle>()
  readonly #shares = new LogShares()

  constructor(report: (revision: string, text: string, rejections: number) => void) {
    this.#report = report
  }

  of(revision: string, holder: Holder): LogThrottle {
    let throttle = this.#throttles.get(revision)
    if (throttle === undefined) {
      throttle = new LogThrottle((text, rejections) => this.#report(revision, text, rejections), holder, this.#shares)
      this.#throttles.set(revision, throttle)
    }
    return throttle
  }

  delete(revision: string): void {
    this.#throttles.delete(revision)
  }
}
