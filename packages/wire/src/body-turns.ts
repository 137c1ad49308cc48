import { FairOrder, Flow, type Holder } from '@carpool/core'
import { LARGE_BYTES } from './body-parts.ts'
import { NO_BODY } from './frame.ts'

/** What is on its way to the peer and has not left the process, in bytes, above which bodies wait. */
const MAX_BACKLOG_BYTES = 256 * 1024
/** A body that is no larger leaves with its message if nothing waits. */
const MAX_WHOLE_BYTES = 256 * 1024
const PART_BYTES = 64 * 1024
/** What an empty part costs: its message. */
const MIN_PART_COST_BYTES = 256
/** Bodies that have begun, together: so much waits at the peer for the rest. One may be larger. */
const MAX_BEGUN_BYTES = 64 * 1024 * 1024

/** Sends the message of a body. @param body it, or the number under which it has gone ahead */
type SendMessage = (body: Uint8Array | number) => void

export interface BodyTurnsParts {
  /** What was sent and has not left the process yet. */
  readonly backlogBytes: () => number
  /** Sends the next part of a body. @param totalBytes of all its parts; 0 if its message never comes */
  readonly sendPart: (number: number, totalBytes: number, part: Uint8Array) => void
}

/** A body that has not left as a whole. */
export interface UnsentBody {
  /** Neither it nor its message leaves any more. Harmless once its message has left. */
  drop(): void
  /** It leaves now, whoever else waits. */
  finish(): void
}

/** The bodies of one function that wait, oldest first. */
class WaitingBodies extends Flow {
  readonly bodies = new Set<WaitingBody>()
}

class WaitingBody {
  readonly body: Uint8Array
  readonly send: SendMessage
  /** It is a part of a stream: it leaves in one piece. */
  readonly isPart: boolean
  /** 0 before its first part. */
  number = 0
  sentBytes = 0

  constructor(body: Uint8Array, send: SendMessage, isPart = false) {
    this.body = body
    this.send = send
    this.isPart = isPart
  }
}

/**
 * Sends large bodies in parts, by turns, between owners and then between their functions. Everything that one side says leaves on
 * one socket, in order: behind a hundred answers of a megabyte, the next answer of somebody else would wait until all of them are
 * read. So no more is handed to the socket than keeps it busy, and what is small goes past the bodies that wait. The message of a
 * body leaves behind its last part, so what is sent about it before that comes first.
 */
export class BodyTurns {
  readonly #parts: BodyTurnsParts
  readonly #order = new FairOrder((holder) => new WaitingBodies(holder))
  readonly #canGoOn = (flow: WaitingBodies): boolean => {
    const [first] = flow.bodies
    return (
      first!.isPart || first!.number > 0 || this.#begunBytes === 0 || this.#begunBytes + first!.body.length <= MAX_BEGUN_BYTES
    )
  }
  #begunBytes = 0
  #lastNumber = 0

  constructor(parts: BodyTurnsParts) {
    this.#parts = parts
  }

  /** Functions of which bodies wait. */
  get waiting(): number {
    return this.#order.waiting
  }

  /**
   * Sends a body and its message, now or by turns. The body must not change until then.
   * @returns what is left to send of it, if anything is
   */
  enter(holder: Holder, body: Uint8Array, send: SendMessage): UnsentBody | undefined {
    const hasRoom = this.#order.waiting === 0 && this.#parts.backlogBytes() < MAX_BACKLOG_BYTES
    if (body.length < LARGE_BYTES || (hasRoom && body.length <= MAX_WHOLE_BYTES)) {
      send(body)
      return undefined
    }
    const waiting = new WaitingBody(body, send)
    this.#order.wait(holder).bodies.add(waiting)
    this.sendOn()
    return {
      drop: () => this.#drop(holder, waiting),
      finish: () => {
        for (let flow = this.#flowOf(holder, waiting); flow !== undefined; flow = this.#flowOf(holder, waiting)) {
          this.#sendPart(flow, waiting)
        }
      },
    }
  }

  /**
   * Sends a part of a stream, or what else is said of it, now or by turns. Those of one function leave in the order in which they
   * came, whatever their size: the end of a stream must not go past its bytes.
   * @param body no longer than a part may be; it must not change until it is sent
   */
  enterPart(holder: Holder, body: Uint8Array, send: (body: Uint8Array) => void): void {
    if (this.#order.waiting === 0 && this.#parts.backlogBytes() < MAX_BACKLOG_BYTES) return send(body)
    this.#order.wait(holder).bodies.add(new WaitingBody(body, () => send(body), true))
    this.sendOn()
  }

  /** Sends as much as the socket takes. To be called when all that was sent has left the process. */
  sendOn(): void {
    while (this.#parts.backlogBytes() < MAX_BACKLOG_BYTES) {
      const flow = this.#order.first(this.#canGoOn)
      if (flow === undefined) return this.#order.reset()
      const [first] = flow.bodies
      this.#sendPart(flow, first!)
    }
  }

  #sendPart(flow: WaitingBodies, waiting: WaitingBody): void {
    const { body, send } = waiting
    if (waiting.isPart) {
      this.#order.charge(flow, Math.max(body.length, MIN_PART_COST_BYTES))
      this.#take(flow, waiting)
      return send(body)
    }
    if (waiting.number === 0) {
      waiting.number = ++this.#lastNumber
      this.#begunBytes += body.length
    }
    const part = body.subarray(waiting.sentBytes, waiting.sentBytes + PART_BYTES)
    waiting.sentBytes += part.length
    this.#order.charge(flow, part.length)
    this.#parts.sendPart(waiting.number, body.length, part)
    if (waiting.sentBytes < body.length) return
    this.#take(flow, waiting)
    send(waiting.number)
  }

  #drop(holder: Holder, waiting: WaitingBody): void {
    const flow = this.#flowOf(holder, waiting)
    if (flow === undefined) return
    this.#take(flow, waiting)
    if (waiting.number > 0) this.#parts.sendPart(waiting.number, 0, NO_BODY)
  }

  /** Where a body waits, if it does. */
  #flowOf(holder: Holder, waiting: WaitingBody): WaitingBodies | undefined {
    const flow = this.#order.find(holder)
    return flow?.bodies.has(waiting) === true ? flow : undefined
  }

  #take(flow: WaitingBodies, waiting: WaitingBody): void {
    flow.bodies.delete(waiting)
    if (waiting.number > 0) this.#begunBytes -= waiting.body.length
    if (flow.bodies.size === 0) this.#order.rest(flow)
  }
}
