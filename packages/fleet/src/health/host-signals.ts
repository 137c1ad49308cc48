import type { Percentiles } from '@carpool/core'
import { whole, type Signals } from '@carpool/wire'
import { LoadHistory, type LoadMeans } from '../scaling/load-history.ts'
import type { ProcessUsage } from '../machine/process-usage.ts'

/** What a host says of itself counts as the present for so long, in ms; a host with work speaks ten times a second. */
const FRESH_MS = 500
/** A host without work speaks once a second; after this long it must have something that holds it up, in ms. */
const SILENT_MS = 1_500
/** A wait of so many targets tells of one function what the p90 of all may not. */
const LONG_WAIT_TARGETS = 10
/** What is shown as the load of the moment, in ms. */
const LATELY_MS = 1_000

/** How one host fares: what it tells, and what the system tells of it, also while it is stuck. */
export class HostSignals {
  readonly #history: LoadHistory
  readonly #targetMs: number
  #last: Signals | undefined
  #toldAtMs: number
  /** Up to when the loop's time is in the sums. */
  #countedToMs: number
  #delayedAtMs = Number.NEGATIVE_INFINITY
  #loopMs = 0
  #delayedMs = 0
  #usage: ProcessUsage = { cpuUs: 0, memoryBytes: 0 }

  /** @param targetMs run delay above which an entry has waited too long; `keptMs`: the longest window of {@link load} */
  constructor({ targetMs, keptMs, nowMs }: { targetMs: number; keptMs: number; nowMs: number }) {
    this.#targetMs = targetMs
    this.#history = new LoadHistory(keptMs)
    this.#toldAtMs = this.#countedToMs = nowMs
  }

  /** The host has told how it fares. What it says may be anything. */
  told(signals: Signals, nowMs: number): void {
    // A host without work speaks seldom: what it tells is of the time just before, not of all since it last did.
    const passedMs = Math.min(nowMs - this.#countedToMs, whole(signals.windowMs))
    this.#toldAtMs = this.#countedToMs = nowMs
    this.#last = signals
    this.#loopMs += clampShare(signals.loopUtilization) * passedMs
    if (!this.#isDelayed(signals)) return
    this.#delayedMs += passedMs
    this.#delayedAtMs = nowMs
  }

  /**
   * Whether entries waited too long: most of those that ran; or if none ran, those that still wait; or one waits for so long that its function must have
   * filled its isolate, which the many short entries of others would hide.
   */
  #isDelayed({ runDelay, oldestWaitUs }: Signals): boolean {
    const targetUs = this.#targetMs * 1000
    if (runDelay.count > 0 && runDelay.p90Us > targetUs) return true
    return whole(oldestWaitUs) > targetUs * (runDelay.count === 0 ? 1 : LONG_WAIT_TARGETS)
  }

  /** Adds to the history. @param usage what the system has the process at; undefined: nobody but the host can tell */
  sample(usage: ProcessUsage | undefined, hasWork: boolean, nowMs: number): void {
    this.#usage = usage ?? { cpuUs: whole(this.#last?.cpuUs ?? 0), memoryBytes: whole(this.#last?.memoryBytes ?? 0) }
    // A loop that says nothing although there is work is busy, and what waits for it is delayed.
    if (hasWork && this.silentMs(nowMs) > FRESH_MS) {
      const stuckMs = nowMs - this.#countedToMs
      this.#loopMs += stuckMs
      this.#delayedMs += stuckMs
      this.#delayedAtMs = this.#countedToMs = nowMs
    }
    this.#history.add({ atMs: nowMs, cpuMs: this.#usage.cpuUs / 1000, loopMs: this.#loopMs, delayedMs: this.#delayedMs })
  }

  load(windowMs: number): LoadMeans {
    return this.#history.over(windowMs)
  }

  get lately(): LoadMeans {
    return this.load(LATELY_MS)
  }

  get memoryBytes(): number {
    return this.#usage.memoryBytes
  }

  /** Whether entries had to wait longer than the target at some time in the last `withinMs`. */
  wasDelayed(withinMs: number, nowMs: number): boolean {
    return nowMs - this.#delayedAtMs <= withinMs
  }

  silentMs(nowMs: number): number {
    return nowMs - this.#toldAtMs
  }

  /** How late the event loop is: by what it said, or because it says nothing. */
  loopDelayMs(nowMs: number): number {
    const silentMs = this.silentMs(nowMs)
    return silentMs > SILENT_MS ? Math.round(silentMs) : whole(this.#last?.loopDelayMs ?? 0)
  }

  runDelayMs(nowMs: number): Percentiles {
    if (this.#last === undefined || this.silentMs(nowMs) > FRESH_MS) return { p50: 0, p90: 0, p99: 0 }
    const { p50Us, p90Us, p99Us } = this.#last.runDelay
    return { p50: whole(p50Us) / 1000, p90: whole(p90Us) / 1000, p99: whole(p99Us) / 1000 }
  }

  /** What an entry of a function that runs nothing else there would wait, in ms. */
  sharedDelayMs(nowMs: number): number {
    return this.silentMs(nowMs) > FRESH_MS ? 0 : whole(this.#last?.sharedDelayUs ?? 0) / 1000
  }

  get isolates(): number {
    return whole(this.#last?.isolates ?? 0)
  }

  get entered(): number {
    return whole(this.#last?.entered ?? 0)
  }

  /** Isolates with work that nobody waits for. */
  get lingering(): number {
    return whole(this.#last?.lingering ?? 0)
  }
}

function clampShare(value: number): number {
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), 1) : 0
}
