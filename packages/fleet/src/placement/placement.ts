import type { HostLimitPolicy } from '../scaling/host-limit.ts'
import { CallQueue, type QueuePolicy } from '@carpool/admission'
import { CarpoolError, NO_USAGE, type Call, type InvocationResult, type Revision } from '@carpool/core'
import { chooseHost } from './choose-host.ts'
import type { HostProcess } from '../pool/host-process.ts'
import type { CallListener } from '../pool/host-types.ts'
import { Lanes, type Lane } from './lanes.ts'

export interface PlacementOptions {
  readonly limit: HostLimitPolicy
  readonly queue: QueuePolicy
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
  readonly calls: CallListener
}

/** What such calls used says nothing of what the next one will. */
const CUT_SHORT: ReadonlySet<InvocationResult['outcome']> = new Set(['canceled', 'host-lost', 'isolate-lost', 'load-failed'])

const CANCELED_IN_QUEUE: InvocationResult = {
  outcome: 'canceled',
  start: 'warm',
  usage: NO_USAGE,
  detail: 'The client left before there was a place for the call.',
}

/** Finds each call a place in a host, at once or when its turn in the queue has come, and sends it there. */
export class Placement {
  readonly #options: PlacementOptions
  readonly #queue: CallQueue
  readonly #lanes = new Lanes()
  readonly #hasPlace = (functionName: string): boolean => this.#hasPlaceFor(functionName)
  readonly #takePlace = (call: Call): boolean => this.#tryPlace(call)

  constructor(options: PlacementOptions) {
    this.#options = options
    const { maxQueued, queue: policy, isOverloaded, hasHost, calls } = options
    this.#queue = new CallQueue({
      maxQueued,
      policy,
      isOverloaded,
      hasHost,
      costMs: (functionName) => this.#lanes.costMs(functionName),
      onCanceled: (call) => calls.answered(call, CANCELED_IN_QUEUE),
      onRefused: (call, error) => calls.refused(call, error),
    })
  }

  get queued(): number {
    return this.#queue.size
  }

  /** Whether calls wait too long, and have for so long that it is no burst. */
  get queueStands(): boolean {
    return this.#queue.stands
  }

  /** Sends a routed call to a host: now if one has room, else when it is its turn. What comes of it is told to the listener of calls. */
  place(call: Call): void {
    if (call.isCanceled) return this.#options.calls.answered(call, CANCELED_IN_QUEUE)
    if (this.#queue.sizeOf(call.functionName) > 0 || !this.#tryPlace(call)) this.#queue.push(call)
  }

  /** A host may have room: those who wait go in, as far as there is. */
  dispatch(): void {
    if (this.#queue.size > 0) this.#queue.dispatch(this.#hasPlace, this.#takePlace)
  }

  /** A host has said how a call ended, or is gone. */
  answered(host: HostProcess, call: Call, result: InvocationResult): void {
    if (!CUT_SHORT.has(result.outcome)) this.#lanes.used(call.functionName, result.usage.cpuUs / 1000)
    if (call.isOfStaleRevision && call.revision !== undefined) host.connection.retire(call.revision.id)
    this.#options.calls.answered(call, result)
  }

  /** What is known of a function is of no use any more. */
  forget(functionName: string): void {
    this.#lanes.forget(functionName)
  }

  /** Refuses what of a function still waits. */
  refuse(functionName: string, error: CarpoolError): void {
    this.#queue.refuseOf(functionName, error)
  }

  /** Refuses what still waits. */
  close(): void {
    this.#queue.close()
  }

  #hasPlaceFor(functionName: string): boolean {
    const lane = this.#lanes.find(functionName)
    return lane !== undefined && this.#hostsFor(functionName).some(({ slots }) => slots.hasRoom(lane))
  }

  /** @returns whether a host took it, or something ended it */
  #tryPlace(call: Call): boolean {
    const { revision } = call
    if (revision === undefined) return false
    const lane = this.#lanes.of(revision)
    const host = this.#choose(lane, revision)
    if (host === undefined) return false
    call.lease = host.slots.take(lane)
    call.host = host.id
    if (host.connection.has(revision.id)) this.#send(call, host)
    else void this.#prepare(call, host, revision)
    return true
  }

  #choose(lane: Lane, revision: Revision): HostProcess | undefined {
    const hosts = this.#hostsFor(lane.functionName)
    const [first] = hosts
    if (hosts.length === 1) return first?.slots.hasRoom(lane) ? first : undefined
    const nowMs = performance.now()
    const candidates = hosts.map((host) => ({
      host,
      hasRoom: host.slots.hasRoom(lane),
      isWarm: host.connection.has(revision.id),
      sharedDelayMs: host.signals.sharedDelayMs(nowMs),
      ofFunction: host.slots.runningOf(lane.functionName),
      running: host.slots.running,
    }))
    return chooseHost(candidates, this.#lanes.costMs(lane.functionName))?.host
  }

  /** One that says nothing may be stuck: nobody is sent there if there is another. */
  #hostsFor(functionName: string): readonly HostProcess[] {
    const hosts = this.#options.readyHosts(functionName)
    if (hosts.length <= 1 || !hosts.some(({ isQuiet }) => isQuiet)) return hosts
    const lively = hosts.filter(({ isQuiet }) => !isQuiet)
    return lively.length > 0 ? lively : hosts
  }

  async #prepare(call: Call, host: HostProcess, revision: Revision): Promise<void> {
    const { give, isLive, calls } = this.#options
    try {
      await give(host, revision)
    } catch (cause) {
      call.lease?.end()
      return calls.refused(call, CarpoolError.from(cause))
    }
    // A deploy may have taken its place while its code was read: nobody else would have the host forget it then.
    call.isOfStaleRevision = !isLive(revision)
    this.#send(call, host)
  }

  #send(call: Call, host: HostProcess): void {
    const { calls } = this.#options
    if (call.isCanceled) {
      call.lease?.end()
      return calls.answered(call, CANCELED_IN_QUEUE)
    }
    calls.placed(call)
    host.connection.invoke(call)
  }
}
