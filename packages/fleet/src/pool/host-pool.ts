import { backoffMs, CarpoolError, type FailedStartsInfo } from '@carpool/core'
import type { HostProcess } from './host-process.ts'

/**
 * When a host process is replaced although nothing is wrong with it: fragmented memory does not go back to the system, and
 * what was corrupted once without a crash should not live for ever (isolated-vm has two open reports of damaged heaps after
 * long use).
 */
export interface RecyclingPolicy {
  /** Longest time that a host serves, in ms; 0: no limit. */
  readonly maxAgeMs: number
  /** Most calls that it takes; 0: no limit. */
  readonly maxInvocations: number
}

export interface HostPoolOptions {
  /** Hosts that serve from the start, and at least. */
  readonly minHosts: number
  /** Hosts that serve at most. */
  readonly maxHosts: number
  /** Processes kept started, to take over at once. */
  readonly standbyHosts: number
  readonly recycling: RecyclingPolicy
  /** Whether a standby may be started now: it takes half a second of a core. */
  readonly canStartStandby: () => boolean
  /** Starts a process. Its end is passed to {@link HostPool.gone}. @throws CarpoolError `no-host` */
  readonly start: () => HostProcess
  /** A host takes calls from now on. */
  readonly onServing: (host: HostProcess) => void
  /** A host has ended unasked, or could not be started; the next start is in so many ms. */
  readonly onLost: (how: string, respawnInMs: number, host?: HostProcess) => void
  /** A start was a success, or not. */
  readonly onStart: (result: 'ready' | 'failed') => void
}

/** A host that lived for so long was healthy: its end does not count as another failure in a row. */
const HEALTHY_AFTER_MS = 10_000
const MAX_RESPAWN_DELAY_MS = 10_000
/** A host that was ready for so long was a success, in ms. */
const SERVED_MS = 1_000
/** Standbys of which there are more than there should be stay for so long after a host was silent, in ms: it may be again. */
const CALM_MS = 10_000
/** Most poisoned hosts at a time that finish their other calls. */
const MAX_POISONED = 3

/** Starts, replaces and ends host processes: keeps a target number of them serving, and some more started as standbys. */
export class HostPool {
  readonly #options: HostPoolOptions
  readonly #hosts = new Set<HostProcess>()
  #target: number
  #failures = 0
  #lastFailure: string | undefined
  #failedAtMs = 0
  #retryAtMs = 0
  #retry: NodeJS.Timeout | undefined
  #isClosed = false
  #silentAtMs = Number.NEGATIVE_INFINITY
  /** A host that has had its time, and the one that takes its place. */
  #replaced: { readonly old: HostProcess; readonly fresh: HostProcess } | undefined

  constructor(options: HostPoolOptions) {
    this.#options = options
    this.#target = options.minHosts
  }

  get all(): Iterable<HostProcess> {
    return this.#hosts
  }

  /** Those that count as capacity, the ones that are starting included, the oldest first. */
  get serving(): HostProcess[] {
    return [...this.#hosts].filter(({ serves }) => serves)
  }

  /** Those that take calls. */
  get ready(): HostProcess[] {
    const ready: HostProcess[] = []
    for (const host of this.#hosts) if (host.takesCalls) ready.push(host)
    return ready
  }

  get failedStarts(): FailedStartsInfo {
    return {
      inRow: this.#failures,
      nextAttemptInMs: this.#retry === undefined ? 0 : Math.max(0, Math.round(this.#retryAtMs - performance.now())),
      ...(this.#lastFailure !== undefined && { last: this.#lastFailure }),
    }
  }

  /** Hosts that are to serve and do not, because starts have failed of late. */
  get missing(): number {
    return Math.max(0, this.#target - this.serving.length)
  }

  scaleUp(count: number): void {
    this.#target = Math.min(this.#target + count, this.#options.maxHosts)
    this.fill()
  }

  /** Drains a host, so that one fewer serves. */
  scaleDown(id: number): void {
    const host = this.serving.find((one) => one.id === id)
    if (host === undefined) return
    this.#target = Math.max(this.#options.minHosts, this.#target - 1)
    host.drain()
  }

  /** What runs in the host harms it: it gets nothing more, and another takes its place. */
  poison(host: HostProcess): void {
    if (!this.#hosts.has(host) || host.state === 'poisoned') return
    host.drain('poisoned')
    // What is stuck there takes up to a core and a good deal of memory, so the calls of the oldest get no more time when
    // there are several.
    const poisoned = [...this.#hosts].filter(({ state }) => state === 'poisoned')
    for (const oldest of poisoned.slice(0, -MAX_POISONED)) oldest.kill()
    this.fill()
  }

  /** Starts and promotes hosts until none is missing. */
  fill(): void {
    if (this.#isClosed) return
    while (this.serving.length < this.#target) if (this.#promoteOne() === undefined) return
    const silent = this.#coverSilent()
    // Hosts that are to serve come first.
    if (this.serving.some(({ takesCalls }) => !takesCalls)) return
    const { canStartStandby } = this.#options
    const wanted = this.#wantedStandbys(silent)
    // What is stuck in a poisoned host keeps the machine busy, and is what the standby is for.
    const isHarmed = [...this.#hosts].some(({ state }) => state === 'poisoned')
    const mayStart = isHarmed ? () => true : canStartStandby
    while (this.#standbys.length < wanted && mayStart()) if (this.#start() === undefined) return
  }

  /**
   * While hosts are silent, one is wanted if none is left, for what takes their place may become silent as well. Not when all
   * are: that is likely to be the machine. Nor when more are silent than are to serve: so a function that stops one host after
   * the other does not have ever more started.
   */
  #wantedStandbys(silent: number): number {
    const { standbyHosts } = this.#options
    if (silent === 0) return standbyHosts
    return silent < this.serving.length && silent <= this.#target ? Math.min(1, standbyHosts) : 0
  }

  /**
   * Has standbys take the calls of hosts that are silent, for as long as these are: most come back. One that does not is poisoned
   * by the kill ladder, and replaced.
   * @returns how many are silent
   */
  #coverSilent(): number {
    const serving = this.serving
    const silent = serving.filter(({ isSilent }) => isSilent).length
    const surplus = serving.length - silent - this.#target
    if (silent > 0) {
      for (const host of this.#standbys.filter(({ isReady }) => isReady).slice(0, Math.max(0, -surplus))) this.#promote(host)
      return silent
    }
    // While a host is replaced for its age, there is one more.
    if (surplus > 0 && this.#replaced === undefined) {
      const newestFirst = serving.toSorted((a, b) => (b.servesSinceMs ?? 0) - (a.servesSinceMs ?? 0))
      for (const host of newestFirst.slice(0, surplus)) host.standDown()
    }
    return 0
  }

  /** Ends standbys that were started while hosts were silent, the newest first, once none has been silent for a while. */
  #trimStandbys(nowMs: number): void {
    if (this.serving.some(({ isSilent }) => isSilent)) this.#silentAtMs = nowMs
    if (nowMs - this.#silentAtMs < CALM_MS) return
    const standbys = this.#standbys
    const surplus = standbys.length - this.#options.standbyHosts
    if (surplus > 0) for (const host of standbys.toSorted((a, b) => b.id - a.id).slice(0, surplus)) host.drain()
  }

  /** Ends the hosts that have drained, and starts what is missing. Called four times a second. */
  upkeep(nowMs: number): void {
    this.#resetFailures(nowMs)
    this.fill()
    this.#trimStandbys(nowMs)
    this.#recycle(nowMs)
    for (const host of this.#hosts) if (host.isDrained(nowMs)) host.stop()
  }

  /** Replaces a host that has had its time, one after the other: the new one takes calls before the old one gets no more. */
  #recycle(nowMs: number): void {
    if (this.#isClosed) return
    const aging = this.#replaced
    if (aging !== undefined) {
      const isOver = !aging.old.serves || !aging.fresh.serves
      if (!isOver && !aging.fresh.takesCalls) return
      this.#replaced = undefined
      if (!isOver) aging.old.drain()
      return
    }
    const old =
      this.ready.find((host) => this.#isDue(host, nowMs)) ??
      this.#standbys.find((host) => host.inFlight === 0 && this.#isDue(host, nowMs))
    if (old === undefined) return
    if (old.isStandby) return old.stop()
    const fresh = this.#promoteOne()
    if (fresh !== undefined) this.#replaced = { old, fresh }
  }

  /** One more that serves, undefined if none can be had now. */
  #promoteOne(): HostProcess | undefined {
    const host = this.#bestStandby() ?? this.#start()
    if (host !== undefined) this.#promote(host)
    return host
  }

  #promote(host: HostProcess): void {
    host.promote()
    if (host.takesCalls) this.#options.onServing(host)
  }

  #isDue(host: HostProcess, nowMs: number): boolean {
    const { livedMs, callsSent: invocations } = host
    const jitter = (host.id * GOLDEN_RATIO) % 1
    const ageMs = host.servesSinceMs === undefined || host.isStandby ? livedMs : nowMs - host.servesSinceMs
    return isDueForRecycling({ ageMs, invocations, jitter }, this.#options.recycling)
  }

  /** A process has ended. */
  gone(host: HostProcess, how: string): void {
    this.#hosts.delete(host)
    if (host.isToEnd || this.#isClosed) return this.fill()
    // One that was ready was ended by somebody, or by code that is contained by other means.
    if (host.livedMs > HEALTHY_AFTER_MS || host.servedMs > SERVED_MS) this.#options.onLost(how, 0, host)
    else this.#fail(how, host)
    this.fill()
  }

  /** Starts nothing more. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
  }

  /** One is lost and its process has not ended yet: its end decides when the next may start. */
  get #isLosingOne(): boolean {
    return [...this.#hosts].some(({ state, isToEnd }) => state === 'gone' && !isToEnd)
  }

  get #standbys(): HostProcess[] {
    return [...this.#hosts].filter(({ isStandby }) => isStandby)
  }

  #bestStandby(): HostProcess | undefined {
    const standbys = this.#standbys
    return standbys.find(({ isReady }) => isReady) ?? standbys[0]
  }

  /** A new standby; undefined if starts have failed of late, and it is not yet time for the next. */
  #start(): HostProcess | undefined {
    if (this.#retry !== undefined || this.#isLosingOne) return undefined
    try {
      const host = this.#options.start()
      this.#hosts.add(host)
      host.ready.then(
        () => this.#started(host),
        () => this.#options.onStart('failed'),
      )
      return host
    } catch (cause) {
      this.#options.onStart('failed')
      this.#fail(CarpoolError.from(cause).message)
      return undefined
    }
  }

  #started(host: HostProcess): void {
    this.#options.onStart('ready')
    if (host.takesCalls) this.#options.onServing(host)
    this.fill()
  }

  /** If a host takes calls so long after the last failure, starting has become healthy again. */
  #resetFailures(nowMs: number): void {
    if (this.#failures === 0 || nowMs - this.#failedAtMs < HEALTHY_AFTER_MS || this.ready.length === 0) return
    this.#failures = 0
    this.#lastFailure = undefined
  }

  #fail(how: string, host?: HostProcess): void {
    this.#lastFailure = how
    this.#failedAtMs = performance.now()
    const respawnInMs = backoffMs(++this.#failures, MAX_RESPAWN_DELAY_MS)
    this.#options.onLost(how, respawnInMs, host)
    if (respawnInMs === 0) return
    clearTimeout(this.#retry)
    this.#retryAtMs = performance.now() + respawnInMs
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.fill()
    }, respawnInMs)
  }
}

/** Hosts that were started together must not all leave together: each leaves up to so much earlier. */
const JITTER = 0.2
/** Multiples of it, modulo 1, spread consecutive ids evenly. */
const GOLDEN_RATIO = 0.618_033_988_75

/**
 * Whether a host has had its time.
 * @param host its age in ms, and the calls that it has taken
 * @param jitter where in the spread this host falls: 0 to 1, the same each time it is asked
 */
export function isDueForRecycling(
  { ageMs, invocations, jitter }: { readonly ageMs: number; readonly invocations: number; readonly jitter: number },
  { maxAgeMs, maxInvocations }: RecyclingPolicy,
): boolean {
  const share = 1 - JITTER * jitter
  return (maxAgeMs > 0 && ageMs >= maxAgeMs * share) || (maxInvocations > 0 && invocations >= maxInvocations * share)
}
