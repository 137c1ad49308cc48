import {
  CarpoolError,
  type Cancellation,
  type HostInfo,
  type HttpRequest,
  type InvocationResult,
  type Revision,
} from '@carpool/core'
import type { StartResult } from '@carpool/wire'
import { chooseHost } from './choose-host.ts'
import { concurrencyLimit } from './concurrency-limit.ts'
import { HostProcess, type HostProcessListener, type HostProgram, type HostRevision, type RevisionCode } from './host-process.ts'
import { HEALTHY_AFTER_MS, respawnDelayMs } from './respawn-delay.ts'

/** A place in a host for one invocation. */
export interface Slot {
  /** Id of the host process. */
  readonly host: number
  /** Runs the invocation there. Never rejects. */
  invoke(id: string, request: HttpRequest, cancellation: Cancellation): Promise<InvocationResult>
}

export interface FleetOptions {
  readonly program: HostProgram
  /** Number of host processes. */
  readonly hosts: number
  /** Longest wait for a host that is starting, in ms, before an invocation is refused. */
  readonly placeTimeoutMs: number
  /** Reads the code of a revision. */
  readonly codeOf: (revision: Revision) => Promise<RevisionCode>
  /** Whether a revision is what its function's name stands for now. */
  readonly isLive: (revision: Revision) => boolean
  readonly listener: HostProcessListener & {
    /** A host that was not told to has ended, or could not be started; a new one is started in so many ms. */
    hostLost(how: string, respawnInMs: number, host?: HostProcess): void
  }
}

/** What a try-out of new code found. */
export interface TryOut {
  readonly result: StartResult
  readonly codeCache: Uint8Array | undefined
}

/** Deploys that are tried out at the same time: each takes a process and up to a core. */
const MAX_TRY_OUTS = 2
/** How long hosts get to end by themselves at shutdown, in ms. */
const STOP_MS = 1_000

/** The host processes: as many as were asked for, each replaced when it dies. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #hosts = new Set<HostProcess>()
  readonly #tryOuts = new Set<HostProcess>()
  readonly #limitTryOuts = concurrencyLimit(MAX_TRY_OUTS)
  #waiting: Array<() => void> = []
  #lastId = 0
  #deathsInRow = 0
  #closing = false

  constructor(options: FleetOptions) {
    this.#options = options
  }

  /** Starts the hosts. Resolves when all are ready. */
  async start(): Promise<void> {
    for (let count = 0; count < this.#options.hosts; count++) this.#spawn()
    await Promise.all([...this.#hosts].map((host) => host.ready))
  }

  get hosts(): HostInfo[] {
    return [...this.#hosts].map((host) => host.info)
  }

  /**
   * Finds a place for an invocation of a revision: at once if a host has its code, else when one has, waiting for one that is starting.
   * @throws CarpoolError `no-host` if none gets ready in time, `draining` if the fleet is closed meanwhile
   */
  place(revision: Revision): Slot | Promise<Slot> {
    const host = this.#choose(revision)
    return host?.has(revision.id) ? slotIn(host, revision) : this.#prepareSlot(revision, host)
  }

  /** Brings a revision up in every host, so that its first call finds it warm. A failure shows again at the first call. */
  async warm(revision: HostRevision, code: RevisionCode): Promise<void> {
    const ready = [...this.#hosts].filter((host) => host.isReady)
    for (const host of ready) host.give(revision, code)
    await Promise.all(ready.map((host) => host.start(revision)))
  }

  /** Has every host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    for (const host of this.#hosts) host.retire(revision)
  }

  /**
   * Compiles and loads new code in a host process of its own, which ends afterwards: whatever the code does, no running function feels it.
   * The code cache is made before any of the code runs.
   */
  tryOut(revision: HostRevision, source: string): Promise<TryOut> {
    return this.#limitTryOuts(() => this.#tryOut(revision, source))
  }

  /** Ends all host processes. */
  async close(): Promise<void> {
    this.#closing = true
    this.#wake()
    const hosts = [...this.#hosts, ...this.#tryOuts]
    for (const host of hosts) host.stop()
    const kill = setTimeout(() => hosts.forEach((host) => host.kill()), STOP_MS)
    await Promise.all(hosts.map(({ ended }) => ended))
    clearTimeout(kill)
  }

  async #tryOut(revision: HostRevision, source: string): Promise<TryOut> {
    const { listener, program } = this.#options
    const host = new HostProcess(
      ++this.#lastId,
      { ...program, setup: { ...program.setup, prewarm: 0 } },
      {
        ...listener,
        // What the module scope logs while it is tried out comes again at the first call, which somebody asked for.
        logged: () => {},
        // A deploy is not the function's work.
        usedInBackground: () => {},
        usedCpu: () => {},
        gone: (gone, how) => {
          this.#tryOuts.delete(gone)
          listener.gone(gone, how)
        },
      },
    )
    this.#tryOuts.add(host)
    try {
      await host.ready
      host.give(revision, { source })
      const codeCache = await host.compile(revision.id)
      return { codeCache, result: await host.start(revision) }
    } finally {
      host.stop()
      host.kill()
    }
  }

  async #prepareSlot(revision: Revision, chosen: HostProcess | undefined): Promise<Slot> {
    const host = chosen ?? (await this.#waitForHost(revision))
    if (!host.has(revision.id)) host.give(revision, await this.#options.codeOf(revision))
    const slot = slotIn(host, revision)
    return {
      host: slot.host,
      invoke: async (...call) => {
        const result = await slot.invoke(...call)
        // A deploy may have taken its place while the host and the code were waited for; nobody else would retire it then.
        if (!this.#options.isLive(revision)) host.retire(revision.id)
        return result
      },
    }
  }

  #choose(revision: Revision): HostProcess | undefined {
    if (this.#hosts.size === 1) {
      const [only] = this.#hosts
      return only?.isReady ? only : undefined
    }
    const ready = [...this.#hosts].filter((host) => host.isReady)
    return chooseHost(ready.map((host) => ({ host, inFlight: host.inFlight, hasRevision: host.has(revision.id) })))?.host
  }

  async #waitForHost(revision: Revision): Promise<HostProcess> {
    const { placeTimeoutMs } = this.#options
    const deadline = performance.now() + placeTimeoutMs
    for (;;) {
      const leftMs = deadline - performance.now()
      if (this.#closing) throw new CarpoolError('draining', 'The server is shutting down.')
      if (leftMs <= 0) throw new CarpoolError('no-host', `No host process was ready within ${placeTimeoutMs} ms.`)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.#waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
      const host = this.#choose(revision)
      if (host !== undefined) return host
    }
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const wake of waiting) wake()
  }

  #spawn(): void {
    try {
      const host = new HostProcess(++this.#lastId, this.#options.program, {
        ...this.#options.listener,
        gone: (gone, how) => this.#replace(gone, how),
      })
      this.#hosts.add(host)
      host.ready.then(
        () => this.#wake(),
        () => {},
      )
    } catch (cause) {
      this.#respawn(cause instanceof Error ? cause.message : String(cause))
    }
  }

  #replace(host: HostProcess, how: string): void {
    this.#hosts.delete(host)
    this.#options.listener.gone(host, how)
    if (host.livedMs > HEALTHY_AFTER_MS) this.#deathsInRow = 0
    if (!this.#closing) this.#respawn(how, host)
  }

  #respawn(how: string, host?: HostProcess): void {
    const respawnInMs = respawnDelayMs(++this.#deathsInRow)
    this.#options.listener.hostLost(how, respawnInMs, host)
    setTimeout(() => !this.#closing && this.#spawn(), respawnInMs).unref()
  }
}

function slotIn(host: HostProcess, revision: Revision): Slot {
  return { host: host.id, invoke: (id, request, cancellation) => host.invoke(id, revision, request, cancellation) }
}
