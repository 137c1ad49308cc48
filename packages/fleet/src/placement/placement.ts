import { CallQueue, type QueuePolicy } from '@carpool/admission'
import { CarpoolError, NO_USAGE, type Call, type Holder, type InvocationResult, type Revision } from '@carpool/core'
import type { HostProcess } from '../pool/host-process.ts'
import { Flows, type Flow } from './host-slots.ts'
import { chooseHost } from './placement-policy.ts'

export interface PlacementOptions {
  readonly queue: QueuePolicy
  /** Most calls that may wait for a host. */
  readonly maxQueued: number
  /** Hosts that take calls of a function. */
  readonly readyHosts: (functionName: string) => readonly HostProcess[]
  /** Whether any host takes calls. */
  readonly hasHost: () => boolean
  /** Every host that has calls, or may have had some. */
  readonly allHosts: () => Iterable<HostProcess>
  /** Whether there is evidence that the CPU is full. */
  readonly isOverloaded: () => boolean
  /** Gives a revision's code to a host. */
  readonly give: (host: HostProcess, revision: Revision) => Promise<void>
  /** Whether a revision is what its function's name stands for now. */
  readonly isLive: (revision: Revision) => boolean
  readonly calls: CallListener
}

/** Learns how calls get on in the hosts. Called on the server's loop. */
export interface CallListener {
  /** A host takes the call now. Called before it is sent, and again if that host is lost and another takes the call. */
  placed(call: Call): void
  /** The host that took the call never began it. Called before the call is placed again, or ends. */
  unplaced(call: Call): void
  /**
   * The host has replied or is gone, or the client has left before there was a host. Called after the slot was given back.
   */
  answered(call: Call, result: InvocationResult): void
  /** No host takes it: `saturated` or `no-host` if there was none in time, `draining` if the fleet was closed meanwhile. */
  refused(call: Call, error: CarpoolError): void
}

/** What such calls used is no measure of what the next one will use. */
const CUT_SHORT: ReadonlySet<InvocationResult['outcome']> = new Set(['canceled', 'host-lost', 'isolate-lost', 'load-failed'])

const CANCELED_IN_QUEUE: InvocationResult = {
  outcome: 'canceled',
  start: 'warm',
  usage: NO_USAGE,
  detail: 'The client left before there was a place for the call.',
}

/** Takes each call to a host, at once or when its turn in the queue has come: 4 and 5 of the table in ARCHITECTURE.md. */
export class Placement {
  readonly #options: PlacementOptions
  #isClosed = false
  readonly #queue: CallQueue
  readonly #flows = new Flows()
  readonly #hasRoom = (functionName: string): boolean => this.#hasRoomFor(functionName)
  readonly #isFullFor = ({ functionName }: Holder): boolean => this.#hostsFor(functionName).every(({ slots }) => slots.isFull)
  readonly #tryPlaceNext = (call: Call): boolean => this.#tryPlace(call)

  constructor(options: PlacementOptions) {
    this.#options = options
    const { maxQueued, queue: policy, isOverloaded, hasHost, calls } = options
    this.#queue = new CallQueue({
      maxQueued,
      policy,
      isOverloaded,
      hasHost,
      costMs: (functionName) => this.#flows.costMs(functionName),
      onCanceled: (call) => calls.answered(call, CANCELED_IN_QUEUE),
      onRefused: (call, error) => calls.refused(call, error),
    })
  }

  get queued(): number {
    return this.#queue.size
  }

  /** Whether waits are too long, and have been for so long that it is no burst. */
  get queueStands(): boolean {
    return this.#queue.stands
  }

  /** Takes a routed call to a host: now if one has room, else from the queue. {@link CallListener} learns how it ends. */
  place(call: Call): void {
    if (call.isCanceled) return this.#options.calls.answered(call, CANCELED_IN_QUEUE)
    // A call that was in a host which ended with the server would wait for another, and its record come too late.
    if (this.#isClosed) return this.#options.calls.refused(call, new CarpoolError('draining', 'The server is shutting down.'))
    if (this.#waitsOf(call) || !this.#tryPlace(call)) this.#queue.push(call)
  }

  /**
   * A host may have room: sends it what waits, as far as it has.
   * @param freedBy a function that has given a slot back, if that is all that has happened
   */
  dispatch(freedBy?: Holder): void {
    if (this.#queue.size > 0) this.#queue.dispatch(this.#hasRoom, this.#tryPlaceNext, freedBy, this.#isFullFor)
  }

  /** A host has replied how a call ended, or is gone. Called after the call's slot was given back. */
  answered(host: HostProcess, call: Call, result: InvocationResult): void {
    if (!CUT_SHORT.has(result.outcome)) this.#flows.used(call.functionName, costMs(call, result))
    if (call.isOfStaleRevision && call.revision !== undefined) host.connection.retire(call.revision.id)
    this.#options.calls.answered(call, result)
  }

  /** A host has not begun a call and will not, so it has its place to find yet. Called after the call's slot was given back. */
  unbegun(host: HostProcess, call: Call): void {
    if (call.isOfStaleRevision && call.revision !== undefined) host.connection.retire(call.revision.id)
    this.#options.calls.unplaced(call)
    this.place(call)
  }

  /** The function is gone: what is known of it is of no use any more. */
  forget(functionName: string): void {
    this.#flows.forget(functionName)
    for (const { slots } of this.#options.allHosts()) slots.forget(functionName)
  }

  /** Refuses what still waits of a function. */
  refuse(functionName: string, error: CarpoolError): void {
    this.#queue.refuseOf(functionName, error)
  }

  /** Refuses what still waits, and what comes. */
  close(): void {
    this.#isClosed = true
    this.#queue.close()
  }

  #waitsOf({ functionName, revision }: Call): boolean {
    return this.#queue.size > 0 && this.#queue.sizeOf(revision ?? { owner: '', functionName }) > 0
  }

  #hasRoomFor(functionName: string): boolean {
    const flow = this.#flows.find(functionName)
    return flow !== undefined && this.#hostsFor(functionName).some(({ slots }) => slots.hasRoom(flow))
  }

  /** 4: takes a slot in a host. @returns false if none has room */
  #tryPlace(call: Call): boolean {
    const { revision } = call
    if (revision === undefined) return false
    const flow = this.#flows.of(revision)
    const host = this.#choose(flow, revision)
    if (host === undefined) return false
    call.slot = host.slots.take(flow)
    call.host = host.id
    if (host.connection.has(revision.id)) this.#send(call, host)
    else void this.#giveAndSend(call, host, revision)
    return true
  }

  #choose(flow: Flow, revision: Revision): HostProcess | undefined {
    const hosts = this.#hostsFor(flow.functionName)
    const [first] = hosts
    if (hosts.length === 1) return first?.slots.hasRoom(flow) ? first : undefined
    const nowMs = performance.now()
    const candidates = hosts.map((host) => ({
      host,
      hasRoom: host.slots.hasRoom(flow),
      isWarm: host.connection.has(revision.id),
      sharedDelayMs: host.load.sharedDelayMs(nowMs),
      ofFunction: host.slots.runningOf(flow.functionName),
      running: host.slots.running,
    }))
    return chooseHost(candidates, this.#flows.costMs(flow.functionName))?.host
  }

  /** A host that is silent may be stuck: it is sent nothing. */
  #hostsFor(functionName: string): readonly HostProcess[] {
    const hosts = this.#options.readyHosts(functionName)
    return hosts.some(isSilent) ? hosts.filter((host) => !isSilent(host)) : hosts
  }

  async #giveAndSend(call: Call, host: HostProcess, revision: Revision): Promise<void> {
    const { give, isLive, calls } = this.#options
    try {
      await give(host, revision)
    } catch (cause) {
      call.slot?.end()
      return calls.refused(call, CarpoolError.from(cause))
    }
    // A deploy may have replaced it while its code was read: then its retirement came too early for this host.
    call.isOfStaleRevision = !isLive(revision)
    this.#send(call, host)
  }

  /** 5: hands the call to its host's connection, whose frame leaves at the end of this turn of the loop. */
  #send(call: Call, host: HostProcess): void {
    const { calls } = this.#options
    if (call.isCanceled) {
      call.slot?.end()
      return calls.answered(call, CANCELED_IN_QUEUE)
    }
    calls.placed(call)
    host.connection.send(call)
  }
}

/** What it used of CPU time, in ms; of an answer that streams, no more than it can have used up to its head. */
function costMs({ begun, placedMs }: Call, { usage }: InvocationResult): number {
  const cpuMs = usage.cpuUs / 1000
  return begun === undefined ? cpuMs : Math.min(cpuMs, Math.max(0, begun.atMs - placedMs))
}

function isSilent(host: HostProcess): boolean {
  return host.isSilent
}
