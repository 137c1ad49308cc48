import { once } from 'node:events'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { CarpoolError, FROM_OUTSIDE, monotonicClock, NOBODY, RoundRobin, type Holder } from '@carpool/core'
import { createServer } from '@carpool/core/node-http'
import Fastify, { type FastifyInstance } from 'fastify'
import { connectionLimit, type GatewayLimits } from './gateway-limits.ts'
import { Connections } from './hardening/connections.ts'
import { copyOf } from './hardening/read-buffer.ts'
import { ReadTurns } from './hardening/read-turns.ts'
import { JoinsSmallChunks } from './hardening/small-chunks.ts'
import { createCalls, type GatewayOptions } from './plugin.ts'
import { errorOfClient, refusalText } from './problems.ts'
import { functionNameIn } from './request.ts'
import { tooManyBuffered } from './request-body.ts'
import { asksForWebSocket } from './web-socket/handshake.ts'
import { IdlePings } from './web-socket/idle-pings.ts'
import { WebSockets } from './web-socket/web-sockets.ts'
import { KEEP_ALIVE_MS, WholeResponse } from './whole-response.ts'

export interface ServerGatewayOptions extends GatewayOptions {
  /** Whether there is a function of this name: calls of no function are read as if they called one. Default: there is. */
  readonly isFunction?: (name: string) => boolean
}

/** How long frames of WebSockets may be decoded in one turn of the event loop, in ms. */
const FRAMES_MS = 1
/** How long nothing may come of a WebSocket before its client is pinged, and then before it counts as gone, in ms. */
const PING_MS = 30_000

const clientsOf = new WeakMap<FastifyInstance, { webSockets: WebSockets; connections: Connections; reading: ReadTurns }>()

function every(callback: () => void, ms: number): { stop(): void } {
  const timer = setInterval(callback, ms)
  return { stop: () => clearInterval(timer) }
}

/** The data plane on an HTTP server of its own, hardened against slow, half-open and lying clients. */
export function createGateway(options: ServerGatewayOptions): FastifyInstance {
  const {
    onRefused = () => {},
    isFunction = () => true,
    ownerOf = () => '',
    random = Math.random,
    phase = () => 'open',
    chainOf = () => FROM_OUTSIDE,
  } = options
  const limits = { ...options.limits, maxConnections: connectionLimit('dataPlane', options.limits.maxConnections) }
  const calls = createCalls({ ...options, limits }, (socket) => connections.find(socket))
  const { handler, lingering, writeStall, sweep, budget } = calls

  /** Answers on the connection itself, where there is no request to answer. */
  const refuse = (socket: Socket, error: CarpoolError): void => {
    onRefused(error.code)
    if (socket.writable) socket.write(refusalText(error, random))
    lingering.close(socket)
  }
  const fail = (socket: Socket, error: CarpoolError): boolean =>
    connections.find(socket)?.fail(error, () => refuse(socket, error)) ?? false
  const connections = new Connections({ limits, clock: monotonicClock, refuse })
  const holderOf = (target: string): Holder => {
    const functionName = functionNameIn(target)
    return isFunction(functionName) ? { owner: ownerOf(functionName), functionName } : NOBODY
  }
  const cut = (socket: Socket): void => {
    if (!fail(socket, tooManyBuffered(limits.maxBufferedBytes))) socket.destroy()
  }
  const reading = new ReadTurns({
    holderOf,
    looksAhead: true,
    budget,
    cut,
  })
  const webSockets = new WebSockets({
    ...options,
    limits,
    phase,
    onRefused,
    chainOf,
    ownerOf,
    random,
    connectionOf: (socket) => connections.find(socket),
    lingering,
    writeStall,
    refuse: ({ socket }, error) => void fail(socket, error),
    sockets: {
      maxMessageBytes: limits.maxBodyBytes,
      turns: new RoundRobin({ turnMs: FRAMES_MS, clock: monotonicClock, nextTurn: setImmediate }),
      budget,
      sweep,
      pings: new IdlePings({ clock: monotonicClock, idleMs: PING_MS, every }),
      clock: monotonicClock,
      stallMs: limits.answerTimeoutMs,
    },
  })
  /** A fault of ours costs one client its connection, and not everybody the server. */
  const faulted = (cause: unknown, socket: Socket): void => {
    options.onFault(CarpoolError.from(cause))
    socket.destroy()
  }
  const onUpgrade = (request: IncomingMessage, early: Buffer): void => {
    // With a body announced, Node.js gives a stream in place of the socket.
    const { socket } = request
    try {
      reading.release(socket)
      // The next read of any connection overwrites it.
      webSockets.handle(request, socket, copyOf(early))
    } catch (cause) {
      faulted(cause, socket)
    }
  }
  const onConnection = (socket: Socket): void => {
    reading.add(socket)
    connections.accept(socket)
  }
  /** There is one route, and Fastify's router would make more objects of a request than all that is done for it here. */
  const onRequest: RequestListener = (request, response) => {
    const { socket, url = '' } = request
    try {
      if (!handler.receive(request, response, monotonicClock())) return
      reading.requestRead(socket, url)
      handler.handle(request, response, url, '')
    } catch (cause) {
      faulted(cause, socket)
    }
  }
  const onConnect = (socket: Socket): void => {
    reading.release(socket)
    // From here on the HTTP server handles no events of the socket.
    socket.on('error', () => socket.destroy())
    fail(socket, new CarpoolError('bad-request', 'The method CONNECT is not supported.'))
  }
  const gateway = Fastify({
    serverFactory: () =>
      createHttpServer(limits)
        .on('connection', onConnection)
        .on('request', onRequest)
        // By default Node.js would ask for a body before its announced length is checked.
        .on('checkContinue', onRequest)
        .on('checkExpectation', onRequest)
        .on('connect', (_request, socket) => onConnect(socket as Socket))
        .on('upgrade', (request, _socket, early) => onUpgrade(request, early)),
    forceCloseConnections: 'idle',
    clientErrorHandler: (cause, socket) => {
      const error = errorOfClient(cause, limits)
      if (error === undefined) socket.destroy()
      else fail(socket, error)
    },
  })
  clientsOf.set(gateway, { webSockets, connections, reading })
  return gateway
}

/** How often connections are checked for headers that took too long, in ms. */
const HEADER_SWEEP_MS = 500

function createHttpServer({ headerTimeoutMs, maxHeaderBytes }: GatewayLimits): Server {
  const server = createServer({
    IncomingMessage: JoinsSmallChunks,
    ServerResponse: WholeResponse,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node.js counts from the first byte of a request, on a new connection from its start. Bodies have a time of their own.
    headersTimeout: headerTimeoutMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(HEADER_SWEEP_MS, headerTimeoutMs),
    maxHeaderSize: maxHeaderBytes,
    insecureHTTPParser: false,
    // Nobody listens to the stream of a request that has no body: its end and its close would each be a tick of their own.
    optimizeEmptyRequests: true,
    // Other offers of a protocol are ignored, and their requests are as any other.
    shouldUpgradeCallback: asksForWebSocket,
    // checkRequest refuses it; Node.js would go on with what comes behind the request.
    requireHostHeader: false,
  })
  // None is dropped silently: checkRequest refuses a request with too many.
  server.maxHeadersCount = 0
  // Undocumented, but older than the documentation: a client that closes only its own side is still answered.
  return Object.assign(server, { httpAllowHalfOpen: true })
}

export interface DrainOptions {
  /** Longest time from now until every connection is cut, in ms. */
  readonly graceMs: number
  /**
   * Called when `graceMs` are over and requests are still under way, a moment before they are cut: the phase must be `closed`
   * from here on.
   */
  readonly onGraceOver?: () => void
}

/**
 * How long a connection without a request stays open while the gateway drains, in ms. To close it at once would lose requests
 * that are already on their way; after this time the client has had an answer that said `connection: close`, or has none to send.
 */
const IDLE_MS = 500
const IDLE_SWEEP_MS = 50
/** How long the refusals after the grace get to leave, in ms. */
const REFUSE_MS = 100

/**
 * Ends a gateway whose phase is `closing`: takes no new connections, serves what comes on those that are open, and resolves once
 * they are all gone. What is under way when the grace is over is cut.
 */
export async function drain(app: FastifyInstance, { graceMs, onGraceOver }: DrainOptions): Promise<void> {
  const { server } = app
  const clients = clientsOf.get(app)
  if (!server.listening || clients === undefined) return app.close()
  const { webSockets, connections, reading } = clients
  webSockets.goAway()
  const closed = once(server, 'close')
  // The HTTP server's own close, which Fastify calls, would close idle connections at once.
  NetServer.prototype.close.call(server)
  const idleEndsMs = performance.now() + IDLE_MS
  const sweep = setInterval(() => {
    // To Node.js, a connection is idle once its answer was handed over, also if its client is still to take it, or if its next
    // request waits to be parsed.
    if (performance.now() >= idleEndsMs && !connections.hasUnread && !reading.isBusy) server.closeIdleConnections()
  }, IDLE_SWEEP_MS)
  let cut: NodeJS.Timeout | undefined
  const graceOver = setTimeout(() => {
    onGraceOver?.()
    cut = setTimeout(() => connections.cut(), REFUSE_MS)
  }, graceMs)
  await closed
  clearInterval(sweep)
  clearTimeout(graceOver)
  clearTimeout(cut)
  await app.close()
}
