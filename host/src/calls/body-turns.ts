import { FairOrder, Flow, type Holder } from '@carpool/core'

/** What is on its way to the server and has not left the process, in bytes, above which bodies wait. */
const MAX_BACKLOG_BYTES = 256 * 1024
/** A smaller body does not wait, and need not enter: it holds up the next message no longer than other messages do. */
export const LARGE_BYTES = 64 * 1024

interface WaitingBody {
  readonly bytes: number
  readonly send: () => void
}

/** The bodies of one function that wait, oldest first. */
class WaitingBodies extends Flow {
  readonly bodies = new Set<WaitingBody>()
}

/** Takes what waits out again. @returns whether it was still waiting */
export type Drop = () => boolean

/**
 * Sends large bodies to the server by turns, between owners and then between their functions. Everything that a host says leaves
 * on one socket, in order: behind a hundred answers of a megabyte, the next answer of somebody else would wait until all of them
 * are read. So no more bodies are handed to the socket than keep it busy, and what is small goes past those that wait.
 */
export class BodyTurns {
  readonly #backlogBytes: () => number
  readonly #order = new FairOrder((holder) => new WaitingBodies(holder))

  /** @param backlogBytes what was sent and has not left the process yet */
  constructor(backlogBytes: () => number) {
    this.#backlogBytes = backlogBytes
  }

  /** Functions of which bodies wait. */
  get waiting(): number {
    return this.#order.waiting
  }

  /** Sends a message with such a body, now or when it is its turn. @returns what takes it out again, if it waits */
  enter(holder: Holder, bytes: number, send: () => void): Drop | undefined {
    if (bytes < LARGE_BYTES || (this.#order.waiting === 0 && this.#backlogBytes() < MAX_BACKLOG_BYTES)) {
      send()
      return undefined
    }
    const body = { bytes, send }
    this.#order.wait(holder).bodies.add(body)
    return () => {
      const flow = this.#order.find(holder)
      return flow !== undefined && this.#take(flow, body)
    }
  }

  /** To be called when all that was sent has left the process. */
  drained(): void {
    while (this.#backlogBytes() < MAX_BACKLOG_BYTES) {
      const flow = this.#order.first()
      if (flow === undefined) return this.#order.reset()
      const [body] = flow.bodies
      this.#take(flow, body!)
      this.#order.charge(flow, body!.bytes)
      body!.send()
    }
  }

  #take(flow: WaitingBodies, body: WaitingBody): boolean {
    if (!flow.bodies.delete(body)) return false
    if (flow.bodies.size === 0) this.#order.rest(flow)
    return true
  }
}
