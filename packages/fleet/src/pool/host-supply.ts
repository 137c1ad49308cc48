import { isDueForRecycling, type RecyclingPolicy } from '../health/recycling.ts'
import { backoffMs, CarpoolError, type FailedStartsInfo } from '@carpool/core'
import type { HostProcess } from './host-process.ts'

export interface HostSupplyOptions {
  /** Hosts that serve from the start, and at least. */
  readonly minHosts: number
  /** Hosts that serve at most. */
  readonly maxHosts: number
  /** Processes kept started, to take over at once. */
  readonly standbyHosts: number
  readonly recycling: RecyclingPolicy
  /** Whether a process that nobody waits for may be started now: it takes half a second of a core. */
  readonly canStartStandby: () => boolean
  /** Starts a process, whose end is told by {@link HostSupply.gone}. @throws CarpoolError `no-host` */
  readonly start: () => HostProcess
  /** A host takes invocations from now on. */
  readonly onServing: (host: HostProcess) => void
  /** A host that was not told to has ended, or could not be started; the next start is in so many ms. */
  readonly onLost: (how: string, respawnInMs: number, host?: HostProcess) => void
  /** A start was a success, or not. */
  readonly onStart: (result: 'ready' | 'failed') => void
}

/** A host that drains waits so long for what a last answer may have left behind, in ms: longer than a host is silent about it. */
const SETTLED_MS = 1_500
/** What nobody waits for gets so long to end, in ms; as in an isolate that is retired. */
const LINGER_MS = 30_000

/** A host that lived for so long was healthy: its end does not count as another failure in a row. */
const HEALTHY_AFTER_MS = 10_000
const MAX_RESPAWN_DELAY_MS = 10_000
/** A host that was ready for so long was a success, in ms. */
const SERVED_MS = 1_000
/** Most poisoned hosts that wait for the end of their other calls. */
const MAX_POISONED = 3

/** Keeps as many hosts serving as are wanted, and some more started, replaces those that die, and ends those that have drained. */
export class HostSupply {
  readonly #options: HostSupplyOptions
  readonly #hosts = new Set<HostProcess>()
  #wanted: number
  #failures = 0
  #lastFailure: string | undefined
  #failedAtMs = 0
  #retryAtMs = 0
  #retry: NodeJS.Timeout | undefined
  #isClosed = false
  /** A host that has had its time, and the one that takes its place. */
  #replaced: { readonly old: HostProcess; readonly fresh: HostProcess } | undefined

  constructor(options: HostSupplyOptions) {
    this.#options = options
    this.#wanted = options.minHosts
  }

  get all(): Iterable<HostProcess> {
    return this.#hosts
  }

  /** Those that count as capacity, the ones that are starting included, the oldest first. */
  get serving(): HostProcess[] {
    return [...this.#hosts].filter(({ serves }) => serves)
  }

  /** Those that take invocations. */
  get ready(): HostProcess[] {
    const ready: HostProcess[] = []
    for (const host of this.#hosts) if (host.takesInvocations) ready.push(host)
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
  get owed(): number {
    return Math.max(0, this.#wanted - this.serving.length)
  }

  grow(count: number): void {
    this.#wanted = Math.min(this.#wanted + count, this.#options.maxHosts)
    this.fill()
  }

  drain(id: number): void {
    const host = this.serving.find((one) => one.id === id)
    if (host === undefined) return
    this.#wanted = Math.max(this.#options.minHosts, this.#wanted - 1)
    host.drain()
  }

  /**
   * What runs in it harms the process: it gets nothing more, and another takes its place.
   */
  poison(host: HostProcess): void {
    if (!this.#hosts.has(host) || host.state === 'poisoned') return
    host.drain('poisoned')
    // What is stuck there takes up to a core and a good deal of memory, so the calls of the oldest get no more time when there are several.
    const poisoned = [...this.#hosts].filter(({ state }) => state === 'poisoned')
    for (const oldest of poisoned.slice(0, -MAX_POISONED)) oldest.kill()
    this.fill()
  }

  /** Starts and promotes what is missing. */
  fill(): void {
    if (this.#isClosed) return
    while (this.serving.length < this.#wanted) if (this.#promoteOne() === undefined) return
    // What is called for comes first.
    if (this.serving.some(({ takesInvocations }) => !takesInvocations)) return
    const { standbyHosts, canStartStandby } = this.#options
    // What is stuck in a poisoned host keeps the machine busy, and is what the standby is for.
    const isHarmed = [...this.#hosts].some(({ state }) => state === 'poisoned')
    const mayStart = isHarmed ? () => true : canStartStandby
    while (this.#standbys.length < standbyHosts && mayStart()) if (this.#start() === undefined) return
  }

  /** Ends the hosts that have drained, and starts what is missing. To be called now and then. */
  upkeep(nowMs: number): void {
    this.#forgive(nowMs)
    this.fill()
    this.#recycle(nowMs)
    for (const host of this.#hosts) if (host.isDrained(nowMs, { settledMs: SETTLED_MS, lingerMs: LINGER_MS })) host.stop()
  }

  /** Replaces a host that has had its time, one after the other: the new one takes invocations before the old one gets no more. */
  #recycle(nowMs: number): void {
    if (this.#isClosed) return
    const aging = this.#replaced
    if (aging !== undefined) {
      const isOver = !aging.old.serves || !aging.fresh.serves
      if (!isOver && !aging.fresh.takesInvocations) return
      this.#replaced = undefined
      if (!isOver) aging.old.drain()
      return
    }
    const old = this.ready.find((host) => this.#isDue(host, nowMs)) ?? this.#standbys.find((host) => this.#isDue(host, nowMs))
    if (old === undefined) return
    if (old.isStandby) return old.stop()
    const fresh = this.#promoteOne()
    if (fresh !== undefined) this.#replaced = { old, fresh }
  }

  /** One more that serves, undefined if none can be had now. */
  #promoteOne(): HostProcess | undefined {
    const host = this.#bestStandby() ?? this.#start()
    host?.promote()
    if (host?.takesInvocations) this.#options.onServing(host)
    return host
  }

  #isDue(host: HostProcess, nowMs: number): boolean {
    const { livedMs, invocationsSent: invocations, lot } = host
    const ageMs = host.servesSinceMs === undefined || host.isStandby ? livedMs : nowMs - host.servesSinceMs
    return isDueForRecycling({ ageMs, invocations, lot }, this.#options.recycling)
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
    if (host.takesInvocations) this.#options.onServing(host)
    this.fill()
  }

  /** What came after the last failure and lives on is a success. */
  #forgive(nowMs: number): void {
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
