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
import { HostProcess, type HostProcessListener, type HostProgram, type HostRevision, type RevisionCode } from './host-process.ts'
import { HEALTHY_AFTER_MS, respawnDelayMs } from './respawn-delay.ts'

/** A place in a host for one invocation. */
export interface Slot {
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
  readonly listener: Omit<HostProcessListener, 'gone'> & {
    /** A host died that was not told to. */
    hostLost(host: HostProcess, how: string, respawnInMs: number): void
  }
}

/** What a try-out of new code found. */
export interface TryOut {
  readonly result: StartResult
  readonly codeCache: Uint8Array | undefined
}

/** The host processes: as many as were asked for, each replaced when it dies. */
export class Fleet {
  readonly #options: FleetOptions
  readonly #hosts = new Set<HostProcess>()
  readonly #tryOuts = new Set<HostProcess>()
  #waiting: Array<() => void> = []
  #lastId = 0
  #deathsInRow = 0
  #closing = false

  constructor(options: FleetOptions) {
    this.#options = options
  }

  /** Starts the hosts. Resolves when all are ready. */
  async start(): Promise<void> {
    const hosts = Array.from({ length: this.#options.hosts }, () => this.#spawn())
    await Promise.all(hosts.map((host) => host.ready))
  }

  get hosts(): HostInfo[] {
    return [...this.#hosts].map((host) => host.info)
  }

  /**
   * Finds a place for an invocation of a revision, waiting for a host if all are starting.
   * @throws CarpoolError `no-host` if none gets ready in time
   */
  async place(revision: Revision): Promise<Slot> {
    const host = this.#choose(revision) ?? (await this.#waitForHost(revision))
    if (!host.has(revision.id)) host.give(revision, await this.#options.codeOf(revision))
    return { invoke: (id, request, cancellation) => host.invoke(id, revision.id, request, cancellation) }
  }

  /** Brings a revision up in every host, so that its first call finds it warm. A failure shows again at the first call. */
  async warm(revision: HostRevision, code: RevisionCode): Promise<void> {
    const ready = [...this.#hosts].filter((host) => host.isReady)
    for (const host of ready) host.give(revision, code)
    await Promise.all(ready.map((host) => host.start(revision.id)))
  }

  /** Has every host forget a revision once what it runs of it has ended. */
  retire(revision: string): void {
    for (const host of this.#hosts) host.retire(revision)
  }

  /**
   * Compiles and loads new code in a host process of its own, which ends afterwards: whatever the code does, no running function feels it.
   * The code cache is made before any of the code runs.
   */
  async tryOut(revision: HostRevision, source: string): Promise<TryOut> {
    const { listener, program } = this.#options
    // What the module scope logs while it is tried out was not asked for by a caller, and comes again at the first call.
    const host = new HostProcess(
      ++this.#lastId,
      { ...program, setup: { ...program.setup, prewarm: 0 } },
      {
        ...listener,
        logged: () => {},
        gone: () => this.#tryOuts.delete(host),
      },
    )
    this.#tryOuts.add(host)
    try {
      await host.ready
      host.give(revision, { source })
      const codeCache = await host.compile(revision.id)
      return { codeCache, result: await host.start(revision.id) }
    } finally {
      host.stop()
      host.kill()
    }
  }

  close(): void {
    this.#closing = true
    for (const host of [...this.#hosts, ...this.#tryOuts]) host.stop()
    this.#wake()
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
      if (this.#closing || leftMs <= 0)
        throw new CarpoolError('no-host', `No host process was ready within ${placeTimeoutMs} ms.`)
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

  #spawn(): HostProcess {
    const host = new HostProcess(++this.#lastId, this.#options.program, {
      ...this.#options.listener,
      gone: (_host, how) => this.#replace(host, how),
    })
    this.#hosts.add(host)
    host.ready.then(
      () => this.#wake(),
      () => {},
    )
    return host
  }

  #replace(host: HostProcess, how: string): void {
    this.#hosts.delete(host)
    if (this.#closing) return
    const wasHealthy = Date.now() - host.startedAt.getTime() > HEALTHY_AFTER_MS
    this.#deathsInRow = wasHealthy ? 1 : this.#deathsInRow + 1
    const respawnInMs = respawnDelayMs(this.#deathsInRow)
    this.#options.listener.hostLost(host, how, respawnInMs)
    if (respawnInMs === 0) this.#spawn()
    else setTimeout(() => !this.#closing && this.#spawn(), respawnInMs).unref()
  }
}
