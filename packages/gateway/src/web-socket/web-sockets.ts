import { randomUUIDv7 } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import {
  Call,
  CarpoolError,
  monotonicClock,
  type CallerSocket,
  type CallInit,
  type FunctionSocket,
  type Outcome,
  type ResponseHead,
} from '@carpool/core'
import { ServerResponse as NodeResponse } from '@carpool/core/node-http'
import type { CallHandlerOptions } from '../call-handler.ts'
import type { Reservation } from '../byte-budget.ts'
import type { ClientConnection } from '../hardening/connections.ts'
import { checkRequest, decodeRequest } from '../request.ts'
import { writeError, writeResult } from '../response-encoder.ts'
import { CLOSE_CODES } from './frame-decoder.ts'
import { acceptance, checkHandshake, WEB_SOCKET_VERSION } from './handshake.ts'
import { ClientWebSocket, type WebSocketParts } from './web-socket.ts'

export interface WebSocketsOptions
  extends Pick<
    CallHandlerOptions,
    | 'invoke'
    | 'limits'
    | 'phase'
    | 'onFault'
    | 'onRefused'
    | 'chainOf'
    | 'ownerOf'
    | 'random'
    | 'connectionOf'
    | 'lingering'
    | 'writeStall'
  > {
  readonly sockets: WebSocketParts
  /** Answers on the connection itself, where there is no request to answer. */
  readonly refuse: (connection: ClientConnection, error: CarpoolError) => void
}

/** What a client may send before its WebSocket is accepted, in bytes: it has nothing to say by then. */
const MAX_EARLY_BYTES = 64 * 1024
const HOPS_HEADER = 'x-carpool-hops'
/** The function's limits: whoever passes them has broken a policy. Other ends without its close frame are faults. */
const OF_LIMITS: ReadonlySet<Outcome> = new Set(['timeout', 'cpu-exceeded', 'memory-exceeded'])

/** A call that came as a request for a WebSocket. */
class WebSocketCall extends Call {
  readonly connection: ClientConnection
  readonly response: ServerResponse
  /** What the client sends before there is an answer, */
  readonly early: Buffer[] = []
  earlyBytes = 0
  /** and its part of the memory for clients. */
  readonly reservation: Reservation
  isInvoked = false
  /** Once the function has accepted it. */
  client: ClientWebSocket | undefined = undefined
  readonly #webSockets: WebSockets

  constructor(
    init: CallInit,
    { connection, response, reservation }: Pick<WebSocketCall, 'connection' | 'response' | 'reservation'>,
    webSockets: WebSockets,
  ) {
    super(init)
    this.connection = connection
    this.response = response
    this.reservation = reservation
    this.#webSockets = webSockets
  }

  override acceptWebSocket(head: ResponseHead, peer: FunctionSocket): CallerSocket | string | undefined {
    return this.#webSockets.accept(this, head, peer)
  }

  override end(error: CarpoolError | undefined): void {
    this.#webSockets.ended(this, error)
  }
}

/** Makes calls of requests for WebSockets. What is no answer that accepts one is answered as to any other request. */
export class WebSockets {
  readonly #options: WebSocketsOptions
  readonly #open = new Set<ClientWebSocket>()

  constructor(options: WebSocketsOptions) {
    this.#options = options
  }

  /** @param early what came behind the request */
  handle(incoming: IncomingMessage, socket: Socket, early: Buffer): void {
    const { connectionOf, chainOf, refuse, phase } = this.#options
    // The HTTP server handles no events of the socket any more.
    socket.on('error', () => socket.destroy())
    const connection = connectionOf(socket)
    if (connection === undefined) return void socket.destroy()
    if (!connection.isIdle)
      return refuse(connection, new CarpoolError('bad-request', 'A WebSocket was asked for behind a request.'))
    const response = new NodeResponse(incoming)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    if (!connection.receive(response, monotonicClock())) return
    connection.refuseFurther()
    const id = randomUUIDv7()
    try {
      checkRequest(incoming, this.#options.limits)
      checkHandshake(incoming)
      if (phase() !== 'open') throw new CarpoolError('draining', 'The server is shutting down; another one may take its place.')
    } catch (cause) {
      const error = CarpoolError.from(cause)
      this.#options.onRefused(error.code)
      return this.#refuse(connection, response, error, id, 0)
    }
    const { functionName, head } = decodeRequest(incoming, incoming.url ?? '/', '')
    const { hops, tree } = chainOf(incoming.headers[HOPS_HEADER])
    const call = new WebSocketCall(
      { id, functionName, trigger: 'http', head, hops, tree, startedAtMs: Date.now(), cameMs: monotonicClock() },
      { connection, response, reservation: this.#options.sockets.budget.open(() => socket.destroy()) },
      this,
    )
    connection.add(call)
    if (functionName === '')
      return this.ended(call, new CarpoolError('route-not-found', 'Functions answer at /<name>/ and below.'))
    this.#cameEarly(call, early)
    // Only who reads sees that the client has left.
    socket.on('data', (chunk: Buffer) => this.#cameEarly(call, chunk))
    call.isInvoked = true
    this.#options.invoke(call)
  }

  /** Those that are open. */
  get count(): number {
    return this.#open.size
  }

  /** The server shuts down: clients are asked to go elsewhere. */
  goAway(): void {
    for (const client of this.#open) client.close(CLOSE_CODES.goingAway, 'The server is shutting down.')
  }

  #cameEarly(call: WebSocketCall, chunk: Buffer): void {
    call.early.push(chunk)
    call.earlyBytes += chunk.length
    call.reservation.add(chunk.length)
    if (call.earlyBytes > MAX_EARLY_BYTES) call.connection.socket.pause()
  }

  accept(call: WebSocketCall, { headers }: ResponseHead, peer: FunctionSocket): CallerSocket | string {
    const { connection, response, functionName, id } = call
    const { socket } = connection
    const accepted = acceptance(response.req, headers, id)
    if ('problem' in accepted) return accepted.problem
    // From here on it is the frames that say whether the client is there.
    connection.remove(call)
    socket.removeAllListeners('data')
    response.detachSocket(socket)
    const holder = { owner: this.#options.ownerOf(functionName), functionName }
    const client = new ClientWebSocket(
      socket,
      holder,
      {
        part: (kind, bytes, more) => peer.part(kind, bytes, more),
        credit: (bytes) => peer.credit(bytes),
        closed: (code, reason) => peer.closed(code, reason),
        lost: () => call.cancel(),
      },
      this.#options.sockets,
    )
    call.client = client
    // What came early is read first.
    socket.pause()
    this.#open.add(client)
    socket.once('close', () => this.#open.delete(client))
    if (socket.destroyed) call.cancel()
    else socket.setNoDelay(true).write(accepted.text, 'latin1')
    // What came early enters the function after its answer was dealt with.
    setImmediate(() => {
      call.reservation.release()
      client.open(Buffer.concat(call.early.splice(0)))
    })
    if (this.#options.phase() !== 'open') client.close(CLOSE_CODES.goingAway, 'The server is shutting down.')
    return client
  }

  /** A call has ended. Called once for each call; never throws, for it is called among those of others. */
  ended(call: WebSocketCall, error: CarpoolError | undefined): void {
    const { connection, client, result } = call
    try {
      if (client === undefined) this.#answer(call, error)
      else if (error !== undefined) client.finish(CLOSE_CODES.fault, error.message)
      else if (result === undefined || result.outcome === 'ok') client.finish(CLOSE_CODES.normal, '')
      else client.finish(OF_LIMITS.has(result.outcome) ? CLOSE_CODES.policy : CLOSE_CODES.fault, result.detail)
    } catch (cause) {
      this.#options.onFault(CarpoolError.from(cause))
      connection.socket.destroy()
    }
  }

  #answer(call: WebSocketCall, error: CarpoolError | undefined): void {
    const { id, connection, response, isInvoked, result, record, cameMs } = call
    connection.remove(call)
    call.reservation.release()
    if (connection.socket.destroyed) return
    if (error !== undefined) {
      if (!isInvoked) this.#options.onRefused(error.code)
      return this.#refuse(connection, response, error, id, monotonicClock() - cameMs)
    }
    if (result === undefined || record === undefined) return
    this.#closeBehind(connection, response)
    writeResult(response, result, record, true)
    this.#options.writeStall.watch(connection.socket, response, result.outcome === 'ok' ? result.response.body.length : 0)
  }

  #refuse(connection: ClientConnection, response: ServerResponse, error: CarpoolError, id: string, queueMs: number): void {
    const { onFault, random } = this.#options
    if (error.code === 'internal') onFault(error)
    if (error.code === 'bad-request') response.setHeader('sec-websocket-version', WEB_SOCKET_VERSION)
    this.#closeBehind(connection, response)
    writeError(response, error, { id, queueMs, isLast: true, random })
    this.#options.writeStall.watch(connection.socket, response, 0)
  }

  /** No HTTP server does it. */
  #closeBehind({ socket }: ClientConnection, response: ServerResponse): void {
    response.once('finish', () => this.#options.lingering.close(socket))
  }
}
