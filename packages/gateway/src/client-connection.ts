import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { CarpoolError } from '@carpool/core'
import type { HttpCall } from './http-call.ts'
import { isTaken } from './is-taken.ts'
import type { RequestBody } from './request-body.ts'

/** What the gateway knows of one connection of a client. There may be several requests on it at the same time, because of pipelining. */
export class ClientConnection {
  readonly socket: Socket
  /** When it was opened, or a request came on it last, in ms. */
  usedAtMs: number
  /** The body that is being read. */
  body: RequestBody | undefined
  /** Why the rest of the newest request cannot be read. */
  broken: CarpoolError | undefined
  /** The calls whose answers are still to come, the first that came first. */
  readonly #waiting: HttpCall[] = []
  #newest: ServerResponse | undefined
  #isOver = false

  constructor(socket: Socket, nowMs: number) {
    this.socket = socket
    this.usedAtMs = nowMs
  }

  /** A request came. @returns false if it comes behind one that ends the connection: nobody would get its answer */
  arrived(response: ServerResponse, nowMs: number): boolean {
    if (this.#isOver) return false
    this.#newest = response
    this.usedAtMs = nowMs
    return true
  }

  /** Whether everything that came has been answered, and the answers are on their way. */
  get isIdle(): boolean {
    return this.#newest === undefined || isTaken(this.#newest)
  }

  /** Whether no later request has come, so that the connection may be closed behind this one's answer. */
  isNewest(response: ServerResponse): boolean {
    return this.#newest === response
  }

  /** The first response that has not been begun; with the pipelined ones behind it, it waits for its invocation. */
  get nextResponse(): ServerResponse | undefined {
    return this.#waiting[0]?.response
  }

  /** Takes no request after those that have come. */
  end(): void {
    this.#isOver = true
  }

  /**
   * What came could not be read.
   * @param tell answers with the error, on the connection itself; called once everything that came before has its answer, so that no answer
   * passes for that of another request. Not called if it is the body of a request that is broken: the answer is that request's.
   */
  fail(error: CarpoolError, tell: () => void): void {
    if (this.#isOver) return
    this.#isOver = true
    const newest = this.#newest
    if (newest === undefined || isTaken(newest)) return tell()
    if (newest.req.complete) {
      // What else comes would only fail again.
      this.socket.pause()
      newest.once('finish', tell)
      return
    }
    this.broken = error
    this.body?.fail(error)
  }

  /**
   * The call is told when the connection closes; at once if it has.
   * @returns how many wait on the connection, with this one
   */
  waits(call: HttpCall): number {
    if (this.socket.destroyed) call.cancel()
    return this.#waiting.push(call)
  }

  /** The answer is on its way: nobody waits for the call any more. */
  answered(call: HttpCall): void {
    const index = this.#waiting.indexOf(call)
    if (index >= 0) this.#waiting.splice(index, 1)
  }

  /** The connection is closed. */
  closed(): void {
    this.#isOver = true
    for (const call of this.#waiting.splice(0)) call.cancel()
  }
}
