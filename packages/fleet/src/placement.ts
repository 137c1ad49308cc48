import type { HostLimitPolicy, QueueTimeoutPolicy } from '@carpool/admission'
import {
  NO_USAGE,
  monotonicClock,
  type Cancellation,
  type CarpoolError,
  type FunctionLimits,
  type HttpRequest,
  type InvocationResult,
  type Revision,
} from '@carpool/core'
import { chooseHost } from './choose-host.ts'
import { CpuCosts } from './cpu-costs.ts'
import type { HostProcess } from './host-process.ts'
import type { Lane, SlotLease } from './host-slots.ts'
import { PlaceQueue } from './place-queue.ts'

/** A place in a host for one invocation. */
export interface Slot {
  /** Id of the host process; 0 if the client left before there was one. */
  readonly host: number
  /** Runs the invocation there. To be called once, at once. Never rejects. */
  invoke(id: string, request: HttpRequest, cancellation: Cancellation): Promise<InvocationResult>
}

export interface PlacementOptions {
  readonly limit: HostLimitPolicy
  readonly queue: QueueTimeoutPolicy
  /** Most calls that may wait for a place. */
  readonly maxQueued: number
  /** Hosts that take invocations of a function. */
  readonly readyHosts: (functionName: string) => readonly HostProcess[]
  /** Whether any host takes invocations. */
  readonly hasHost: () => boolean
  /** Whether there is evidence that the CPU is full. */
  readonly isOverloaded: () => boolean
  /** Gives a revision's code to a host. */
  readonly give: (host: HostProcess, revision: Revision) => Promise<void>
  /** Whether a revision is what its function's name stands for now. */
  readonly isLive: (revision: Revision) => boolean
}

/** A host with the right to run one invocation in it. */
interface Place {
  readonly host: HostProcess
  readonly lease: SlotLease
}

/** What such calls used says nothing of what the next one will. */
const CUT_SHORT: ReadonlySet<InvocationResult['outcome']> = new Set(['canceled', 'host-lost', 'isolate-lost', 'load-failed'])
/** What a call is taken to cost of which nothing is known, in ms. */
const UNKNOWN_COST_MS = 1

const CANCELED_IN_QUEUE: InvocationResult = {
  outcome: 'canceled',
  start: 'warm',
  usage: NO_USAGE,
  detail: 'The client left before there was a place for the call.',
}
const NO_SLOT: Slot = { host: 0, invoke: () => Promise.resolve(CANCELED_IN_QUEUE) }

/** Finds each invocation a place in a host, at once or when its turn in the queue has come. */
export class Placement {
  readonly #options: PlacementOptions
  readonly #queue: PlaceQueue<Place>
  readonly #costs = new CpuCosts()
  /** Wall limits of functions whose calls have waited in the queue. */
  readonly #wallMs = new Map<string, number>()

  constructor(options: PlacementOptions) {
    this.#options = options
    const { maxQueued, queue: timeouts, isOverloaded, hasHost } = options
    this.#queue = new PlaceQueue({
      maxQueued,
      timeouts,
      clock: monotonicClock,
      isOverloaded,
      hasHost,
      costMs: (functionName) => this.#costMs(functionName),
    })
  }

  get queued(): number {
    return this.#queue.size
  }

  /** Whether calls wait too long, and have for so long that it is no burst. */
  get queueStands(): boolean {
    return this.#queue.stands
  }

  /** @throws CarpoolError `saturated` or `no-host` if there is no place in time, `draining` if it is closed meanwhile */
  place(revision: Revision, cancellation: Cancellation): Slot | Promise<Slot> {
    if (cancellation.canceled) return NO_SLOT
    const place = this.#queue.sizeOf(revision.functionName) === 0 ? this.#take(revision) : undefined
    if (place === undefined) return this.#waitForSlot(revision, cancellation)
    return place.host.connection.has(revision.id) ? this.#slotIn(place, revision) : this.#prepareSlot(revision, place)
  }

  /** A host may have room: those who wait go in, as far as there is. */
  dispatch(): void {
    const hasPlace = (functionName: string): boolean => {
      const lane = this.#laneOf({ functionName, limits: { wallMs: this.#wallMs.get(functionName) ?? 0 } })
      return this.#hostsFor(functionName).some(({ slots }) => slots.hasRoom(lane))
    }
    this.#queue.dispatch(hasPlace, (revision) => this.#take(revision))
  }

  /** What is known of a function is of no use any more. */
  forget(functionName: string): void {
    this.#costs.forget(functionName)
    this.#wallMs.delete(functionName)
  }

  /** Refuses what of a function still waits. */
  refuse(functionName: string, error: CarpoolError): void {
    this.#queue.refuseOf(functionName, error)
  }

  /** Refuses what still waits. */
  close(): void {
    this.#queue.close()
  }

  #take(revision: Revision): Place | undefined {
    const { functionName } = revision
    const nowMs = performance.now()
    const lane = this.#laneOf(revision)
    const candidates = this.#hostsFor(functionName).map((host) => ({
      host,
      hasRoom: host.slots.hasRoom(lane),
      isWarm: host.connection.has(revision.id),
      sharedDelayMs: host.signals.sharedDelayMs(nowMs),
      ofFunction: host.slots.runningOf(functionName),
      running: host.slots.running,
    }))
    const host = chooseHost(candidates, this.#costMs(functionName))?.host
    return host && { host, lease: host.slots.take(lane) }
  }

  /** One that says nothing may be stuck: nobody is sent there if there is another. */
  #hostsFor(functionName: string): readonly HostProcess[] {
    const hosts = this.#options.readyHosts(functionName)
    if (!hosts.some(({ isQuiet }) => isQuiet)) return hosts
    const lively = hosts.filter(({ isQuiet }) => !isQuiet)
    return lively.length > 0 ? lively : hosts
  }

  async #waitForSlot(revision: Revision, cancellation: Cancellation): Promise<Slot> {
    this.#wallMs.set(revision.functionName, revision.limits.wallMs)
    const place = await this.#queue.wait(revision, cancellation)
    if (place === undefined) return NO_SLOT
    return place.host.connection.has(revision.id) ? this.#slotIn(place, revision) : this.#prepareSlot(revision, place)
  }

  async #prepareSlot(revision: Revision, place: Place): Promise<Slot> {
    const { host, lease } = place
    try {
      await this.#options.give(host, revision)
    } catch (cause) {
      lease.end()
      throw cause
    }
    const slot = this.#slotIn(place, revision)
    return {
      host: slot.host,
      invoke: async (...call) => {
        const result = await slot.invoke(...call)
        // A deploy may have taken its place while the host and the code were waited for; nobody else would retire it then.
        if (!this.#options.isLive(revision)) host.connection.retire(revision.id)
        return result
      },
    }
  }

  #slotIn({ host, lease }: Place, revision: Revision): Slot {
    return {
      host: host.id,
      invoke: async (id, request, cancellation) => {
        if (cancellation.canceled) {
          lease.end()
          return CANCELED_IN_QUEUE
        }
        const result = await host.connection.invoke({ id, revision, slot: lease }, request, cancellation)
        if (!CUT_SHORT.has(result.outcome)) this.#costs.used(revision.functionName, result.usage.cpuUs / 1000)
        return result
      },
    }
  }

  #laneOf({ functionName, limits: { wallMs } }: { functionName: string; limits: Pick<FunctionLimits, 'wallMs'> }): Lane {
    return { functionName, costMs: this.#costs.meanMs(functionName), wallMs }
  }

  #costMs(functionName: string): number {
    return this.#costs.meanMs(functionName) ?? UNKNOWN_COST_MS
  }
}
