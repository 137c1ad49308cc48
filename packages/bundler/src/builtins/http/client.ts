import incoming from 'carpool-node:_http_incoming'
import outgoing from 'carpool-node:_http_outgoing'
import { Buffer } from 'node:buffer'
import EventEmitter from 'node:events'
import process from 'node:process'
import { urlToHttpOptions } from 'node:url'
import { ExchangeSocket, type Outgoing } from './exchange-socket.ts'
import { complete, type Fed, feed } from './feed.ts'

interface RequestOptions {
  protocol?: string | null
  hostname?: string | null
  host?: string | null
  port?: number | string | null
  path?: string | null
  method?: string
  headers?: Record<string, string | number | readonly string[]> | ReadonlyArray<string | readonly [string, string]>
  auth?: string | null
  timeout?: number
  signal?: AbortSignal
  agent?: Agent | boolean
  defaultPort?: number
  setHost?: boolean
  [name: string]: unknown
}

type Listener = (...args: unknown[]) => void
type Callback = (response: IncomingResponse) => void

interface IncomingResponse extends EventEmitter, Fed {
  statusCode: number
  statusMessage: string
  httpVersion: string
  httpVersionMajor: number
  httpVersionMinor: number
  req: unknown
  _addHeaderLines(list: readonly string[], count: number): void
  _dump(): void
}

/** What is used of a message, which Node.js' own code makes. */
interface OutgoingBase extends EventEmitter, Outgoing {
  socket: ExchangeSocket | null
  chunkedEncoding: boolean
  useChunkedEncodingByDefault: boolean
  shouldKeepAlive: boolean
  destroyed: boolean
  readonly writableEnded: boolean
  _closed: boolean
  _flush(): void
  _storeHeader(firstLine: string, headers: unknown): void
  getHeaders(): Record<string, string | number | readonly string[]>
  hasHeader(name: string): boolean
  getHeader(name: string): string | number | readonly string[] | undefined
  setHeader(name: string, value: unknown): void
  end(...args: unknown[]): this
}

const { IncomingMessage } = incoming as unknown as { IncomingMessage: new (socket: ExchangeSocket) => IncomingResponse }
const { OutgoingMessage } = outgoing as unknown as { OutgoingMessage: new (options?: object) => OutgoingBase }

/** What fetch says itself. */
const OF_CONNECTION = [
  'host',
  'connection',
  'keep-alive',
  'content-length',
  'transfer-encoding',
  'expect',
  'upgrade',
  'te',
  'trailer',
]
/** A body that is said to be no longer is collected. */
const WHOLE_BYTES = 1024 * 1024
const WITHOUT_BODY = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']

/** Connections are the host's: an agent holds what it was made with, and nothing else. */
export class Agent extends EventEmitter {
  readonly options: Record<string, unknown>
  readonly protocol: string
  readonly defaultPort: number
  readonly sockets = {}
  readonly freeSockets = {}
  readonly requests = {}
  keepAlive: boolean
  maxSockets: number
  maxFreeSockets: number
  maxTotalSockets: number

  constructor(options: Record<string, unknown> = {}, protocol = 'http:') {
    super()
    this.options = { ...options }
    this.protocol = protocol
    this.defaultPort = protocol === 'https:' ? 443 : 80
    this.keepAlive = options['keepAlive'] === true
    this.maxSockets = Number(options['maxSockets'] ?? Infinity)
    this.maxFreeSockets = Number(options['maxFreeSockets'] ?? 256)
    this.maxTotalSockets = Number(options['maxTotalSockets'] ?? Infinity)
  }

  getName({ host = 'localhost', port = '' }: RequestOptions = {}): string {
    return `${host}:${port}:`
  }
  createConnection(): never {
    throw Object.assign(new Error('http.Agent.createConnection is not available in a function: it has no sockets.'), {
      code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM',
    })
  }
  destroy(): void {}
}

/** A request that `fetch` sends: in one piece if it is complete by the end of the call that began its body, else as a stream. */
export class ClientRequest extends OutgoingMessage {
  readonly agent: Agent
  readonly method: string
  path: string
  readonly host: string
  readonly protocol: string
  readonly reusedSocket = false
  aborted = false
  timeout: number | undefined
  res: IncomingResponse | undefined
  maxHeadersCount = null
  readonly #origin: string
  readonly #parts: Buffer[] = []
  #upload: ReadableStreamDefaultController<Uint8Array> | undefined
  #onDrain: (() => void) | undefined
  /** The server takes no more of it: what is still written goes nowhere. */
  #isUnwanted = false
  #isBegun = false
  readonly #abort = new AbortController()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    input: string | URL | RequestOptions,
    options?: RequestOptions | Callback,
    callback?: Callback,
    usual = new Agent(),
  ) {
    super()
    const done = typeof options === 'function' ? options : callback
    const more = typeof options === 'function' ? {} : (options ?? {})
    const from =
      typeof input === 'string' ? urlToHttpOptions(new URL(input)) : input instanceof URL ? urlToHttpOptions(input) : input
    const given: RequestOptions = { ...(from as RequestOptions), ...more }
    this.agent = typeof given.agent === 'object' && given.agent !== null ? given.agent : usual
    this.protocol = given.protocol ?? usual.protocol
    if (!/^https?:$/.test(this.protocol)) {
      throw Object.assign(new TypeError(`Protocol "${this.protocol}" not supported. Expected "${usual.protocol}"`), {
        code: 'ERR_INVALID_PROTOCOL',
      })
    }
    if (given['socketPath'] !== undefined) {
      throw Object.assign(new Error('Requests to a socketPath are not available in a function: it has no sockets.'), {
        code: 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM',
      })
    }
    this.method = (given.method ?? 'GET').toUpperCase()
    this.path = given.path || '/'
    if (/[^\u0021-\u00ff]/.test(this.path)) {
      throw Object.assign(new TypeError('Request path contains unescaped characters'), { code: 'ERR_UNESCAPED_CHARACTERS' })
    }
    this.host = given.hostname ?? given.host?.replace(/:\d+$/, '') ?? 'localhost'
    const usualPort = this.protocol === 'https:' ? 443 : 80
    const port = Number(given.port ?? given.defaultPort ?? usualPort)
    const name = this.host.includes(':') && !this.host.startsWith('[') ? `[${this.host}]` : this.host
    this.#origin = `${this.protocol}//${name}${port === usualPort ? '' : `:${port}`}`

    this.#setHeaders(given.headers)
    if (given.setHost !== false && !this.hasHeader('host')) this.setHeader('Host', port === usualPort ? name : `${name}:${port}`)
    if (given.auth && !this.hasHeader('authorization')) {
      this.setHeader('Authorization', `Basic ${Buffer.from(given.auth).toString('base64')}`)
    }
    if (WITHOUT_BODY.includes(this.method)) this.useChunkedEncodingByDefault = false
    this.shouldKeepAlive = this.agent.keepAlive
    if (done !== undefined) this.once('response', done as Listener)
    if (given.timeout !== undefined) this.setTimeout(given.timeout)
    const { signal } = given
    if (signal !== undefined) this.#follow(signal)
    this.once('finish', () => {
      if (this.#upload === undefined) void this.#send()
      else if (!this.destroyed && !this.#isUnwanted) this.#upload.close()
    })
    process.nextTick(() => this.#connect())
  }

  get connection(): ExchangeSocket | null {
    return this.socket
  }

  _implicitHeader(): void {
    const { kOutHeaders } = internals
    this._storeHeader(`${this.method} ${this.path} HTTP/1.1\r\n`, (this as unknown as Record<symbol, unknown>)[kOutHeaders])
    this.chunkedEncoding = false
  }

  setTimeout(timeout: number, callback?: Listener): this {
    this.timeout = timeout
    clearTimeout(this.#timer)
    if (callback !== undefined) this.once('timeout', callback)
    if (timeout > 0) this.#timer = setTimeout(() => this.emit('timeout'), timeout)
    return this
  }
  setNoDelay(): void {}
  setSocketKeepAlive(): void {}
  clearTimeout(callback?: Listener): void {
    this.setTimeout(0, callback)
  }

  abort(): void {
    if (this.aborted) return
    this.aborted = true
    process.nextTick(() => this.emit('abort'))
    this.destroy()
  }

  destroy(error?: Error): this {
    if (this.destroyed) return this
    this.destroyed = true
    this.#abort.abort()
    this.res?.destroy(error)
    const cause = error ?? (this.res === undefined ? hangUp() : undefined)
    process.nextTick(() => {
      if (cause !== undefined) this.emit('error', cause)
      this.#close()
    })
    return this
  }

  #setHeaders(headers: RequestOptions['headers']): void {
    if (headers === undefined || headers === null) return
    if (!Array.isArray(headers)) {
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) this.setHeader(name, value)
      return
    }
    const pairs = Array.isArray(headers[0])
      ? headers
      : Array.from({ length: headers.length / 2 }, (_, index) => headers.slice(index * 2, index * 2 + 2))
    for (const [name, value] of pairs as ReadonlyArray<readonly [string, string]>) this.setHeader(name, value)
  }

  #follow(signal: AbortSignal): void {
    const onAbort = (): void => {
      const error = new Error('The operation was aborted', { cause: signal.reason })
      this.destroy(Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' }))
    }
    if (signal.aborted) process.nextTick(onAbort)
    else {
      signal.addEventListener('abort', onAbort, { once: true })
      this.once('close', () => signal.removeEventListener('abort', onAbort))
    }
  }

  #connect(): void {
    if (this.destroyed) return
    const socket = new ExchangeSocket((bytes, done) => this.#take(bytes, done))
    socket.encrypted = this.protocol === 'https:'
    socket.authorized = socket.encrypted
    socket._httpMessage = this
    socket.on('error', () => {})
    socket.carry(this)
    this.socket = socket
    this.emit('socket', socket)
    this._flush()
  }

  #take(bytes: Buffer, done: () => void): void {
    if (this.#isUnwanted) return done()
    if (this.#upload !== undefined) {
      if (bytes.length > 0) this.#upload.enqueue(new Uint8Array(bytes))
      if ((this.#upload.desiredSize ?? 1) > 0) done()
      else this.#onDrain = done
      return
    }
    if (bytes.length > 0) this.#parts.push(bytes)
    done()
    if (bytes.length === 0 || this.#isBegun || this.method === 'GET' || this.method === 'HEAD') return
    this.#isBegun = true
    // What says that it is small is sent in one piece, with its length, which some servers ask for.
    if (Number(this.getHeader('content-length') ?? Infinity) <= WHOLE_BYTES) return
    // Most others are complete by then as well.
    process.nextTick(() => {
      if (!this.writableEnded && !this.destroyed) void this.#send(this.#stream())
    })
  }

  #stream(): ReadableStream<Uint8Array> {
    const goOn = (): void => {
      const done = this.#onDrain
      this.#onDrain = undefined
      done?.()
    }
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#upload = controller
        for (const part of this.#parts) controller.enqueue(new Uint8Array(part))
      },
      pull: goOn,
      cancel: () => {
        this.#isUnwanted = true
        goOn()
      },
    })
  }

  async #send(stream?: ReadableStream<Uint8Array>): Promise<void> {
    const headers = new Headers()
    for (const [name, value] of Object.entries(this.getHeaders())) {
      if (OF_CONNECTION.includes(name)) continue
      for (const one of Array.isArray(value) ? (value as readonly string[]) : [value]) headers.append(name, String(one))
    }
    const whole =
      this.#parts.length === 0 || this.method === 'GET' || this.method === 'HEAD' ? undefined : Buffer.concat(this.#parts)
    try {
      const { signal } = this.#abort
      const response = await fetch(this.#origin + this.path, {
        method: this.method,
        headers,
        redirect: 'manual',
        signal,
        ...(stream !== undefined && { body: stream, duplex: 'half' }),
        ...(stream === undefined && whole !== undefined && { body: whole as unknown as Uint8Array<ArrayBuffer> }),
      })
      if (!this.destroyed) this.#receive(response)
    } catch (error) {
      if (!this.destroyed)
        this.destroy(Object.assign(error as Error, { code: (error as { code?: string }).code ?? 'ECONNRESET' }))
    }
  }

  #receive(response: Response): void {
    clearTimeout(this.#timer)
    const socket = this.socket ?? new ExchangeSocket((_bytes, done) => done())
    const res = new IncomingMessage(socket)
    this.res = res
    res.req = this
    res.statusCode = response.status
    res.statusMessage = response.statusText
    res.httpVersion = '1.1'
    res.httpVersionMajor = 1
    res.httpVersionMinor = 1
    const lines = [...response.headers].flat()
    res._addHeaderLines(lines, lines.length)
    if (response.body === null) complete(res)
    else feed(res, response.body)
    res.once('end', () => this.#close())
    res.once('close', () => {
      // Nobody reads on of what was destroyed before its end.
      if (!res.complete) this.#abort.abort()
      this.#close()
    })
    if (!this.emit('response', res)) res._dump()
  }

  #close(): void {
    clearTimeout(this.#timer)
    if (this._closed) return
    this.destroyed = true
    this._closed = true
    process.nextTick(() => this.emit('close'))
  }
}

function hangUp(): Error {
  return Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' })
}

import http from 'carpool-node:internal/http'
const internals = http as unknown as { readonly kOutHeaders: symbol }
