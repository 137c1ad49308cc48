import incoming from 'carpool-node:_http_incoming'
import serverParts from 'carpool-node:_http_server'
import { Buffer } from 'node:buffer'
import EventEmitter from 'node:events'
import process from 'node:process'
import { support } from '../support.ts'
import { ExchangeSocket, type Outgoing } from './exchange-socket.ts'
import { complete, type Fed, feed } from './feed.ts'

type Listener = (...args: unknown[]) => void

export interface IncomingRequest extends EventEmitter, Fed {
  method: string
  url: string
  httpVersion: string
  httpVersionMajor: number
  httpVersionMinor: number
  _consuming: boolean
  readonly _readableState: { readonly resumeScheduled: boolean }
  _addHeaderLines(list: readonly string[], count: number): void
  _dump(): void
}

export interface OutgoingResponse extends EventEmitter, Outgoing {
  chunkedEncoding: boolean
  useChunkedEncodingByDefault: boolean
  shouldKeepAlive: boolean
  sendDate: boolean
  readonly writableEnded: boolean
  destroyed: boolean
  _storeHeader(...args: unknown[]): void
  assignSocket(socket: ExchangeSocket): void
  detachSocket(socket: ExchangeSocket): void
}

interface ServerOptions {
  readonly IncomingMessage?: new (socket: ExchangeSocket) => IncomingRequest
  readonly ServerResponse?: new (request: IncomingRequest, options?: object) => OutgoingResponse
  readonly [name: string]: unknown
}

const { IncomingMessage } = incoming as unknown as { IncomingMessage: new (socket: ExchangeSocket) => IncomingRequest }
const { ServerResponse } = serverParts as unknown as {
  ServerResponse: new (request: IncomingRequest, options?: object) => OutgoingResponse
}

const DEFAULT_PORT = 8080
/** Servers that have been made and not closed, in the order of their making. */
const created = new Set<HttpServer>()

/** A server that listens to no port: its function's calls come to it as requests. */
class HttpServer extends EventEmitter {
  listening = false
  timeout = 0
  keepAliveTimeout = 5_000
  headersTimeout = 60_000
  requestTimeout = 300_000
  maxHeadersCount: number | null = null
  maxRequestsPerSocket = 0
  readonly options: ServerOptions
  #port = DEFAULT_PORT

  constructor(options?: ServerOptions | Listener | null, listener?: Listener) {
    super()
    this.options = (typeof options === 'object' ? options : undefined) ?? {}
    const onRequest = typeof options === 'function' ? options : listener
    if (onRequest !== undefined) this.on('request', onRequest)
    created.add(this)
  }

  listen(...args: unknown[]): this {
    const [first] = args
    const given = typeof first === 'object' && first !== null ? (first as { port?: unknown }).port : first
    const port = Number(given)
    if (port > 0) this.#port = port
    const done = args.findLast((one) => typeof one === 'function') as Listener | undefined
    if (done !== undefined) this.once('listening', done)
    this.listening = true
    // One that was closed may listen again.
    created.add(this)
    process.nextTick(() => this.emit('listening'))
    return this
  }

  close(done?: Listener): this {
    const wasListening = this.listening
    this.listening = false
    created.delete(this)
    if (done !== undefined) {
      const notRunning = Object.assign(new Error('Server is not running.'), { code: 'ERR_SERVER_NOT_RUNNING' })
      this.once('close', () => done(...(wasListening ? [] : [notRunning])))
    }
    process.nextTick(() => this.emit('close'))
    return this
  }

  address(): { address: string; family: string; port: number } | null {
    return this.listening ? { address: '::', family: 'IPv6', port: this.#port } : null
  }

  setTimeout(timeout: number, callback?: Listener): this {
    this.timeout = timeout
    if (callback !== undefined) this.on('timeout', callback)
    return this
  }
  getConnections(done: (error: null, count: number) => void): this {
    process.nextTick(done as Listener, null, 0)
    return this
  }
  closeAllConnections(): void {}
  closeIdleConnections(): void {}
  ref(): this {
    return this
  }
  unref(): this {
    return this
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  /** Answers one request of the web. */
  handle(request: Request): Promise<Response> {
    return exchange(this, request)
  }
}

let hasWarned = false

/** A client wants the connection for another protocol, and the app would take it over. */
function warnOfUpgrade(server: HttpServer, request: Request): void {
  if (hasWarned || !request.headers.has('upgrade') || server.listenerCount('upgrade') === 0) return
  hasWarned = true
  console.error(
    'A server in a function cannot take over connections (upgrade): it answers calls, and has no sockets. WebSockets need a server of their own.',
  )
}

async function exchange(server: HttpServer, request: Request): Promise<Response> {
  warnOfUpgrade(server, request)
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD'
  const streams = hasBody && support.streams(request)
  const body = hasBody && !streams ? Buffer.from(await request.arrayBuffer()) : undefined
  return new Promise((resolve, reject) => {
    const answer = new Answer(request.method, resolve, reject)
    const socket = new ExchangeSocket((bytes, done) => answer.take(bytes, done))
    const { options } = server
    const req = new (options.IncomingMessage ?? IncomingMessage)(socket)
    const { url, headers } = request
    const pathStart = url.indexOf('/', url.indexOf('://') + 3)
    socket.encrypted = url.startsWith('https:')
    socket.server = server
    const forwarded = headers.get('x-forwarded-for')?.split(',').at(-1)?.trim()
    if (forwarded !== undefined) socket.remoteAddress = forwarded
    req.httpVersionMajor = 1
    req.httpVersionMinor = 1
    req.httpVersion = '1.1'
    req.method = request.method
    req.url = pathStart === -1 ? '/' : url.slice(pathStart)
    const lines = [...headers].flat()
    // A request in chunks comes without its framing; parsers of bodies take one without any for one without a body.
    if (!headers.has('content-length')) {
      if (streams) lines.push('transfer-encoding', 'chunked')
      else if (body !== undefined && body.length > 0) lines.push('content-length', String(body.length))
    }
    req._addHeaderLines(lines, lines.length)

    const res = new (options.ServerResponse ?? ServerResponse)(req, {})
    const stopFeeding = streams ? feed(req, request.body!) : undefined
    withoutFraming(res)
    socket.carry(res)
    answer.response = res
    res.assignSocket(socket)
    res.on('finish', () => {
      // What is left of the request ends with its answer.
      if (stopFeeding !== undefined) stopFeeding()
      else if (!req._consuming && !req._readableState.resumeScheduled) req._dump()
      res.detachSocket(socket)
      answer.end()
      process.nextTick(() => {
        if (res.destroyed) return
        res.destroyed = true
        ;(res as unknown as { _closed: boolean })._closed = true
        res.emit('close')
      })
    })
    socket.on('error', () => {})
    socket.on('close', () => answer.cutOff())
    answer.onCancel = () => socket.destroy()
    request.signal.addEventListener('abort', () => {
      req.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }))
      socket.destroy()
    })
    try {
      if (!server.emit('request', req, res)) socket.destroy()
    } catch (error) {
      reject(error as Error)
      return
    }
    if (stopFeeding !== undefined) return
    if (body !== undefined && body.length > 0) req.push(body)
    complete(req)
  })
}

/** The body goes out as it is: lengths and chunks are for whoever sends it. */
function withoutFraming(res: OutgoingResponse): void {
  const store = res._storeHeader
  res.useChunkedEncodingByDefault = false
  res.shouldKeepAlive = false
  res.sendDate = false
  res._storeHeader = function (this: OutgoingResponse, ...args) {
    store.apply(this, args)
    this.chunkedEncoding = false
  }
}

const NO_BODY = [101, 103, 204, 205, 304]
/** Of the connection to the client, which is not the app's. */
const OF_CONNECTION = ['connection', 'keep-alive', 'transfer-encoding']

/** Makes a response of the web of what an app writes: in one piece if it is all there at once, else a stream. */
class Answer {
  response: OutgoingResponse | undefined
  onCancel: () => void = () => {}
  readonly #method: string
  readonly #resolve: (response: Response) => void
  readonly #reject: (reason: unknown) => void
  readonly #parts: Buffer[] = []
  #isWaiting = false
  #isOver = false
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #onDrain: (() => void) | undefined

  constructor(method: string, resolve: (response: Response) => void, reject: (reason: unknown) => void) {
    this.#method = method
    this.#resolve = resolve
    this.#reject = reject
  }

  take(bytes: Buffer, done: () => void): void {
    if (this.#controller !== undefined) {
      if (bytes.length > 0) this.#controller.enqueue(new Uint8Array(bytes))
      if ((this.#controller.desiredSize ?? 1) > 0) done()
      else this.#onDrain = done
      return
    }
    if (bytes.length > 0) this.#parts.push(bytes)
    done()
    if (this.#isWaiting || this.response?._header === null) return
    this.#isWaiting = true
    // Most responses are complete by the end of the call that began them.
    process.nextTick(() => {
      if (!this.#isOver && this.response?.writableEnded === false) this.#stream()
    })
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#controller !== undefined) return this.#controller.close()
    const [only] = this.#parts
    this.#respond(this.#parts.length === 1 ? only! : Buffer.concat(this.#parts))
  }

  /** The app has closed the connection. */
  cutOff(): void {
    if (this.#isOver) return
    this.#isOver = true
    const error = new Error('The app closed the connection before its answer was complete.')
    if (this.#controller === undefined) this.#reject(error)
    else this.#controller.error(error)
  }

  #stream(): void {
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller
        for (const part of this.#parts) controller.enqueue(new Uint8Array(part))
      },
      pull: () => {
        const done = this.#onDrain
        this.#onDrain = undefined
        done?.()
      },
      cancel: () => this.onCancel(),
    })
    this.#respond(stream)
  }

  #respond(body: Buffer | ReadableStream<Uint8Array>): void {
    const [first = '', ...lines] = (this.response?._header ?? '').split('\r\n')
    const [, status = '200', statusText = ''] = /^HTTP\/1\.1 (\d+) ?(.*)$/.exec(first) ?? []
    const headers = new Headers()
    for (const line of lines) {
      const end = line.indexOf(': ')
      const name = line.slice(0, end)
      if (end > 0 && !OF_CONNECTION.includes(name.toLowerCase())) headers.append(name, line.slice(end + 2))
    }
    const isEmpty = this.#method === 'HEAD' || NO_BODY.includes(Number(status)) || (body instanceof Buffer && body.length === 0)
    try {
      const content = isEmpty ? null : (body as ReadableStream<Uint8Array>)
      this.#resolve(new Response(content, { status: Number(status), statusText, headers }))
    } catch (error) {
      this.#reject(error)
    }
  }
}

/** Classes of Node.js' that can be called without `new`. */
export const Server = new Proxy(HttpServer, {
  apply: (target, _self, args: ConstructorParameters<typeof HttpServer>) => new target(...args),
})

export function createServer(options?: ServerOptions | Listener | null, listener?: Listener): HttpServer {
  return new HttpServer(options, listener)
}

interface App {
  listen(port: number): unknown
  ready?(): PromiseLike<unknown>
  callback?(): Listener
  handle?: unknown
  server?: unknown
}

type Handler = (request: Request) => Promise<Response>

const isApp = (value: unknown): value is App =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') && typeof (value as App).listen === 'function'

/** Calls go to the server once it listens. */
function whenListening(find: () => HttpServer | undefined): Handler {
  return async (request) => {
    const found = find()
    if (found !== undefined) return found.handle(request)
    const listened = await Promise.race(
      Array.from(created, (server) => new Promise<HttpServer>((resolve) => server.once('listening', () => resolve(server)))),
    )
    return listened.handle(request)
  }
}

const firstListening = (): HttpServer | undefined => created.values().find(({ listening }) => listening)

function handlerOfApp(app: App): Handler {
  if (app instanceof HttpServer) return (request) => app.handle(request)
  if (typeof app.ready === 'function' && app.server instanceof HttpServer) {
    const { server } = app
    const ready = Promise.resolve(app.ready())
    ready.catch(() => {})
    return async (request) => {
      await ready
      return server.handle(request)
    }
  }
  if (typeof app.callback === 'function' && app.handle === undefined)
    return handlerOfApp(createServer(app.callback()) as unknown as App)
  if (typeof app.callback === 'function' || typeof app === 'function') {
    return handlerOfApp(createServer((typeof app === 'function' ? app : app.callback!()) as Listener) as unknown as App)
  }
  app.listen(DEFAULT_PORT)
  return whenListening(firstListening)
}

support.adaptServers((exported, isLast) => {
  if (isApp(exported)) return handlerOfApp(exported)
  // What else is exported may be a handler; a server that listens is the function only if nothing is.
  return isLast && created.size > 0 ? whenListening(firstListening) : undefined
})

export { IncomingMessage, ServerResponse }
