import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { monotonicClock, type CarpoolError } from '@carpool/core'
import { ByteBudget } from './byte-budget.ts'
import { Connections } from './hardening/connections.ts'
import { ReadTurns } from './hardening/read-turns.ts'
import { LingeringClose, Sweep, WriteStallTimeout } from './hardening/slow-clients.ts'
import { JoinsSmallChunks } from './hardening/small-chunks.ts'
import { stopReading } from './hardening/stop-reading.ts'
import { errorOfClient, refusalText } from './problems.ts'
import { tooManyBuffered } from './request-body.ts'

export interface OneRequestEachOptions {
  /** Most connections at the same time; at the limit idle ones make room for new ones, and then those that are not kept. */
  readonly maxConnections: number
  /** Longest time in which a client may take nothing of an answer that waits for it, in ms. */
  readonly answerTimeoutMs: number
  /** Most bytes of answers that clients have not taken, in memory at the same time. */
  readonly maxUnreadBytes: number
}

/**
 * Takes one request at a time on each connection, and bounds connections and answers that are not taken: for servers whose
 * clients are few, as a control plane's. A request that comes before the last one has its answer closes its connection: in one
 * packet there may be a thousand of them, and no client of such a server sends any. It is closed at once, since the answer before
 * may be a stream without end, and who waited for that would not notice that the client leaves.
 */
export class OneRequestEach {
  /** For the server: joins the small chunks of bodies. */
  readonly IncomingMessage = JoinsSmallChunks
  readonly #reading: ReadTurns
  readonly #connections: Connections
  readonly #lingering: LingeringClose
  readonly #writeStall: WriteStallTimeout

  constructor({ maxConnections, answerTimeoutMs, maxUnreadBytes }: OneRequestEachOptions) {
    const clock = monotonicClock
    const sweep = new Sweep(clock)
    const budget = new ByteBudget(maxUnreadBytes)
    const tooMuch = tooManyBuffered(maxUnreadBytes)
    const cut = (socket: Socket): void => {
      if (this.#connections.find(socket)?.fail(tooMuch, () => this.#refuse(socket, tooMuch)) !== true) socket.destroy()
    }
    this.#reading = new ReadTurns({ holderOf: (owner) => ({ owner, functionName: '' }), budget, cut })
    this.#lingering = new LingeringClose(sweep, clock)
    this.#writeStall = new WriteStallTimeout({ sweep, budget, clock, timeoutMs: answerTimeoutMs })
    const limits = { maxConnections, addressConnections: 0 }
    this.#connections = new Connections({ limits, clock, refuse: (socket, error) => this.#refuse(socket, error) })
  }

  /** Has a server's requests handled. @returns the server */
  listen(server: Server, handle: RequestListener): Server {
    const onRequest: RequestListener = (request, response) => {
      if (this.#takes(request.socket, response)) handle(request, response)
    }
    return (
      server
        .on('connection', (socket) => {
          this.#reading.add(socket)
          const connection = this.#connections.accept(socket)
          if (connection !== undefined) connection.yields = true
        })
        .on('request', onRequest)
        // Else Node.js answers it by itself.
        .on('checkExpectation', onRequest)
    )
  }

  /**
   * A request shows that it is of an owner, who may be here. Until it has its answer, its connection makes no room for others;
   * and it waits behind none that nobody knows.
   */
  keep({ socket }: IncomingMessage, response: ServerResponse, owner: string): void {
    this.#reading.requestRead(socket, owner)
    const connection = this.#connections.find(socket)
    if (connection === undefined) return
    connection.yields = false
    response.once('close', () => (connection.yields = true))
  }

  /** What came could not be read. */
  clientFailed(cause: Error & { code?: string }, socket: Socket): void {
    const error = errorOfClient(cause)
    if (error === undefined) socket.destroy()
    else this.#connections.find(socket)?.fail(error, () => this.#refuse(socket, error))
  }

  #takes(socket: Socket, response: ServerResponse): boolean {
    const connection = this.#connections.find(socket)
    if (connection === undefined) return false
    if (!connection.isIdle) {
      stopReading(socket)
      socket.destroy()
      return false
    }
    if (!connection.receive(response, monotonicClock())) return false
    connection.body = { fail: (error) => (response.headersSent ? socket.destroy() : this.#refuse(socket, error)) }
    // A stream is watched from its head on; what it holds is bounded by who writes it.
    this.#writeStall.watch(socket, response, 0)
    response.once('prefinish', () => this.#writeStall.watch(socket, response, response.writableLength))
    return true
  }

  #refuse(socket: Socket, error: CarpoolError): void {
    if (socket.writable) socket.write(refusalText(error))
    this.#lingering.close(socket)
  }
}
