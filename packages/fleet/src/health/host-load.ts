import type { Percentiles } from '@carpool/core'
import { whole, type LoadReport } from '@carpool/wire'
import type { ProcessUsage } from '../pool/os-process.ts'
import type { Load } from '../scaling/scaling-policy.ts'

/** A report counts as the present for so long, in ms; a host with work reports ten times a second, and is silent after that. */
const FRESH_MS = 500
/** A host without work reports once a second; after this long its event loop must be held up, in ms. */
const UNHEARD_MS = 1_500
/** A wait of so many targets shows that a function has filled its isolate, which the p90 of all may not. */
const LONG_WAIT_TARGETS = 10
/** What is shown as the load of the moment, in ms. */
const LATELY_MS = 1_000
/** Evidence that entries wait too long holds for so long, in ms. */
const DELAYED_MS = 1_000

export interface HostLoadOptions {
  /** Run delay above which an entry has waited too long. */
  readonly targetMs: number
  /** Share of a core, or of the event loop's time, from which on the host is busy. */
  readonly saturationPercent: number
  /** The longest window of {@link HostLoad.over}. */
  readonly keptMs: number
  readonly nowMs: number
}

/** The load of one host: by its own reports, and by what the system counts, also while it is stuck. */
export class HostLoad {
  readonly #history: LoadHistory
  readonly #targetMs: number
  readonly #saturationPercent: number
  #last: LoadReport | undefined
  #reportedAtMs: number
  /** When it was last seen without work. */
  #idleAtMs = Number.NEGATIVE_INFINITY
  /** Since when it has had work, or may have, of what was seen since it was heard. */
  #workSinceMs: number | undefined
  /** Up to when the loop's time is in the sums. */
  #countedToMs: number
  #delayedAtMs = Number.NEGATIVE_INFINITY
  #loopMs = 0
  #delayedMs = 0
  #usage: ProcessUsage = { cpuUs: 0, memoryBytes: 0 }

  constructor({ targetMs, saturationPercent, keptMs, nowMs }: HostLoadOptions) {
    this.#targetMs = targetMs
    this.#saturationPercent = saturationPercent
    this.#history = new LoadHistory(keptMs)
    this.#reportedAtMs = this.#countedToMs = nowMs
  }

  /** The host has reported its load. It runs user code, so any value may be in there. */
  onReport(report: LoadReport, nowMs: number): void {
    // A host without work reports seldom, and of the time just before, not of all since the last report.
    const passedMs = Math.min(nowMs - this.#countedToMs, whole(report.windowMs))
    this.#reportedAtMs = this.#countedToMs = nowMs
    this.#workSinceMs = undefined
    this.#last = report
    this.#loopMs += clampShare(report.loopUtilization) * passedMs
    if (!this.#showsDelay(report)) return
    this.#delayedMs += passedMs
    this.#delayedAtMs = nowMs
  }

  /**
   * Whether entries waited too long: most of those that ran; or if none ran, those that still wait; or one waits for so long
   * that its function must have filled its isolate, which the many short entries of others would hide.
   */
  #showsDelay({ runDelay, oldestWaitUs }: LoadReport): boolean {
    const targetUs = this.#targetMs * 1000
    if (runDelay.count > 0 && runDelay.p90Us > targetUs) return true
    return whole(oldestWaitUs) > targetUs * (runDelay.count === 0 ? 1 : LONG_WAIT_TARGETS)
  }

  /** The server itself was held up for so long, and heard nobody meanwhile: that is no silence of the host. */
  excuse(lateMs: number, nowMs: number): void {
    this.#reportedAtMs = Math.min(nowMs, this.#reportedAtMs + lateMs)
    this.#countedToMs = Math.min(nowMs, this.#countedToMs + lateMs)
    this.#idleAtMs = Math.min(nowMs, this.#idleAtMs + lateMs)
    if (this.#workSinceMs !== undefined) this.#workSinceMs = Math.min(nowMs, this.#workSinceMs + lateMs)
  }

  /** Adds to the history. @param usage as the system counts it; undefined: only the host's own figures are known */
  sample(usage: ProcessUsage | undefined, hasWork: boolean, nowMs: number): void {
    const hasRun = usage === undefined || usage.cpuUs > this.#usage.cpuUs
    this.#usage = usage ?? { cpuUs: whole(this.#last?.cpuUs ?? 0), memoryBytes: whole(this.#last?.memoryBytes ?? 0) }
    if (hasWork) this.#workSinceMs ??= Math.max(this.#reportedAtMs, this.#idleAtMs)
    else this.#idleAtMs = nowMs
    // A loop that reports nothing although there is work is busy, and what waits for it is delayed. One that stands still is not
    // what more hosts, or fewer calls, would help.
    if (hasRun && this.isSilent(nowMs)) {
      const stuckMs = nowMs - Math.max(this.#countedToMs, this.#idleAtMs)
      this.#loopMs += stuckMs
      this.#delayedMs += stuckMs
      this.#delayedAtMs = this.#countedToMs = nowMs
    }
    this.#history.add({ atMs: nowMs, cpuMs: this.#usage.cpuUs / 1000, loopMs: this.#loopMs, delayedMs: this.#delayedMs })
  }

  over(windowMs: number): Load {
    return this.#history.over(windowMs)
  }

  get lately(): Load {
    return this.over(LATELY_MS)
  }

  /** Whether it has lately filled its core or its event loop. */
  get isBusy(): boolean {
    const { cpuCores, loopUtilization } = this.lately
    return Math.max(cpuCores, loopUtilization) >= this.#saturationPercent / 100
  }

  get memoryBytes(): number {
    return this.#usage.memoryBytes
  }

  /** Whether entries have lately waited longer than the target. */
  isDelayed(nowMs: number): boolean {
    return nowMs - this.#delayedAtMs <= DELAYED_MS
  }

  /** Whether it has work and has said nothing for a while. Without work it reports once a second only. */
  isSilent(nowMs: number): boolean {
    return nowMs - Math.max(this.#reportedAtMs, this.#idleAtMs) > FRESH_MS
  }

  /** How long it has said nothing since it had work, in ms; 0 if it had none. Also while its calls are taken back. */
  silentMs(nowMs: number): number {
    return this.#workSinceMs === undefined ? 0 : nowMs - this.#workSinceMs
  }

  /** How late the event loop is: as reported, or for how long it has reported nothing. */
  loopDelayMs(nowMs: number): number {
    const unheardMs = this.#unheardMs(nowMs)
    return unheardMs > UNHEARD_MS ? Math.round(unheardMs) : whole(this.#last?.loopDelayMs ?? 0)
  }

  runDelayMs(nowMs: number): Percentiles {
    if (this.#last === undefined || this.#unheardMs(nowMs) > FRESH_MS) return { p50: 0, p90: 0, p99: 0 }
    const { p50Us, p90Us, p99Us } = this.#last.runDelay
    return { p50: whole(p50Us) / 1000, p90: whole(p90Us) / 1000, p99: whole(p99Us) / 1000 }
  }

  /** What an entry of a function that runs nothing else there would wait, in ms. */
  sharedDelayMs(nowMs: number): number {
    return this.#unheardMs(nowMs) > FRESH_MS ? 0 : whole(this.#last?.sharedDelayUs ?? 0) / 1000
  }

  #unheardMs(nowMs: number): number {
    return nowMs - this.#reportedAtMs
  }

  get isolates(): number {
    return whole(this.#last?.isolates ?? 0)
  }

  get entered(): number {
    return whole(this.#last?.entered ?? 0)
  }

  /** Isolates with background work. */
  get lingering(): number {
    return whole(this.#last?.lingering ?? 0)
  }
}

function clampShare(value: number): number {
  return Number.isFinite(value) ? Math.min(Math.max(value, 0), 1) : 0
}

/** Sums that only grow, at one moment. */
export interface LoadSums {
  readonly atMs: number
  /** CPU time of the process. */
  readonly cpuMs: number
  /** Time in which its event loop was busy. */
  readonly loopMs: number
  /** Time in which the run delay was above its target. */
  readonly delayedMs: number
}

/** The sums of the last while: gives the mean over any window up to that long. */
export class LoadHistory {
  readonly #keptMs: number
  #sums: LoadSums[] = []
  #first = 0

  /** @param keptMs the longest window that will be asked for */
  constructor(keptMs: number) {
    this.#keptMs = keptMs
  }

  add(sums: LoadSums): void {
    this.#sums.push(sums)
    while (this.#first < this.#sums.length - 1 && this.#sums[this.#first + 1]!.atMs <= sums.atMs - this.#keptMs) this.#first++
    if (this.#first < 1024) return
    this.#sums = this.#sums.slice(this.#first)
    this.#first = 0
  }

  /** Means over the last so many ms, or over as much as is known. */
  over(windowMs: number): Load {
    const last = this.#sums.at(-1)
    const from = last && this.#sumsAt(last.atMs - windowMs)
    const spanMs = last && from ? last.atMs - from.atMs : 0
    if (last === undefined || from === undefined || spanMs === 0) {
      return { cpuCores: 0, loopUtilization: 0, delayedShare: 0, spanMs: 0 }
    }
    return {
      cpuCores: (last.cpuMs - from.cpuMs) / spanMs,
      loopUtilization: Math.min(1, (last.loopMs - from.loopMs) / spanMs),
      delayedShare: Math.min(1, (last.delayedMs - from.delayedMs) / spanMs),
      spanMs,
    }
  }

  /** The newest sums that are at least so old, or else the oldest. */
  #sumsAt(atMs: number): LoadSums | undefined {
    let [low, high] = [this.#first, this.#sums.length - 1]
    while (low < high) {
      const middle = Math.ceil((low + high) / 2)
      if (this.#sums[middle]!.atMs <= atMs) low = middle
      else high = middle - 1
    }
    return this.#sums[low]
  }
}
