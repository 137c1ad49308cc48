import { type BodyKind, type Channel, type InvokeHead, library } from '../host.ts'
import { jsonStringify, SafeTypeError, setOwn, stringToUpperCase } from '../../language/primordials.ts'
import { matches, toText } from '../../language/values.ts'
import { type AbortSignal, abortSignal, createSignal, followSignal, isAborted, isAbortSignal, reasonOf } from '../abort-signal.ts'
import { customInspect } from '../console/inspect.ts'
import {
  type Body,
  bodyFromBridge,
  bodyOfChannel,
  type BodyInit,
  type BodyMembers,
  cloneBody,
  extractBody,
  mixBody,
  takeBody,
} from './body.ts'
import {
  copyHeaders,
  Headers,
  headersFromList,
  type HeadersInit,
  headersJson,
  implyContentType,
  listOf,
  valueOfHeader,
} from './headers.ts'

export type Redirect = 'follow' | 'error' | 'manual'

export interface RequestInit {
  method?: string
  headers?: HeadersInit
  body?: BodyInit
  signal?: AbortSignal | null
  redirect?: Redirect
  cache?: string
  credentials?: string
  mode?: string
  referrer?: string
  referrerPolicy?: string
  integrity?: string
  keepalive?: boolean
  duplex?: string
}

/** The request of an invocation, as the host sent it: nothing of it is read before user code asks. */
export interface HostRequest {
  readonly head: InvokeHead
  readonly bodyKind: BodyKind
  readonly body: string
  /** Of a body of the kind `stream`. */
  readonly channel: Channel | undefined
  /** Why the invocation was canceled; undefined unless it was. */
  readonly cancelReason: unknown
}

/** Proves to the constructor that `input` is a HostRequest. */
const FROM_HOST = Symbol('from host')
const METHODS = /^(?:DELETE|GET|HEAD|OPTIONS|POST|PUT)$/i
const FORBIDDEN_METHODS = /^(?:CONNECT|TRACE|TRACK)$/i
const TOKEN = /^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/
const PASSED_ON = ['cache', 'credentials', 'mode', 'referrer', 'referrerPolicy', 'integrity', 'keepalive'] as const
type PassedOn = Pick<RequestInit, (typeof PASSED_ON)[number]>

export let requestFromHost: (source: HostRequest) => Request
/** Aborts the signal of a request that the host sent. */
export let abortRequest: (request: Request, reason: unknown) => void
export let isRequest: (value: unknown) => value is Request
export let bodyOfRequest: (request: Request) => Body | null
export let methodOfRequest: (request: Request) => string
export let signalOfRequest: (request: Request) => AbortSignal
export let urlOfRequest: (request: Request) => string
/** All but the body as the JSON text of a FetchHead. Reads no property that user code could have replaced. */
export let fetchHeadJson: (request: Request) => string
/** Ends the request's interest in the signal that it was made with, which may live much longer. */
export let releaseSignal: (request: Request) => void
let contentTypeOf: (request: Request) => string | null

export class Request implements BodyMembers {
  // Put on the prototype by mixBody.
  declare readonly body: BodyMembers['body']
  declare readonly bodyUsed: boolean
  declare readonly arrayBuffer: BodyMembers['arrayBuffer']
  declare readonly blob: BodyMembers['blob']
  declare readonly bytes: BodyMembers['bytes']
  declare readonly formData: BodyMembers['formData']
  declare readonly json: BodyMembers['json']
  declare readonly text: BodyMembers['text']

  /** Set for the request of an invocation, whose parts are filled in from it as they are asked for. */
  readonly #source: HostRequest | undefined
  #method = 'GET'
  #url = ''
  #headers: Headers | undefined
  #body: Body | null | undefined
  #signal: AbortSignal | undefined
  #unfollow: (() => void) | undefined
  #redirect: Redirect = 'follow'
  #options: PassedOn | undefined

  static {
    requestFromHost = (source) => new Request(source, FROM_HOST as unknown as RequestInit)
    abortRequest = (request, reason) => {
      if (request.#signal !== undefined) abortSignal(request.#signal, reason)
    }
    isRequest = (value): value is Request => typeof value === 'object' && value !== null && #source in value
    bodyOfRequest = (request) => request.#getBody()
    methodOfRequest = (request) => request.#getMethod()
    signalOfRequest = (request) => request.#getSignal()
    urlOfRequest = (request) => request.#getUrl()
    contentTypeOf = (request) => valueOfHeader(request.#getHeaders(), 'content-type')
    fetchHeadJson = (request) => {
      const method = jsonStringify(request.#getMethod())
      const url = jsonStringify(request.#getUrl())
      const headers = headersJson(listOf(request.#getHeaders()))
      return `{"method":${method},"url":${url},"headers":${headers},"redirect":${jsonStringify(request.#redirect)}}`
    }
    releaseSignal = (request) => {
      const unfollow = request.#unfollow
      unfollow?.()
    }
  }

  constructor(input: unknown, init?: RequestInit | null) {
    if ((init as unknown) === FROM_HOST) {
      this.#source = input as HostRequest
      return
    }
    const from = isRequest(input) ? input : undefined
    this.#url = from === undefined ? checkUrl(toText(input)) : from.#getUrl()
    if (from !== undefined) {
      this.#method = from.#getMethod()
      this.#redirect = from.#redirect
      this.#options = from.#options
    }
    const method = init?.method
    if (method !== undefined) this.#method = checkMethod(toText(method))
    const headers = init?.headers
    if (headers !== undefined) this.#headers = new Headers(headers)
    else this.#headers = from === undefined ? new Headers() : copyHeaders(from.#getHeaders())
    this.#takeOptions(init)
    if (this.#options?.cache === 'only-if-cached' && this.#options.mode !== 'same-origin') {
      throw new SafeTypeError('A request can be only-if-cached with the mode same-origin only.')
    }
    const given = init?.signal
    const signal = given === undefined && from !== undefined ? from.#getSignal() : given
    if (signal !== undefined && signal !== null) this.#follow(signal)
    this.#takeBody(from, init)
  }

  get method(): string {
    return this.#getMethod()
  }

  get url(): string {
    return this.#getUrl()
  }

  get headers(): Headers {
    return this.#getHeaders()
  }

  get signal(): AbortSignal {
    return this.#getSignal()
  }

  get redirect(): Redirect {
    return this.#redirect
  }

  get cache(): string {
    return this.#options?.cache ?? 'default'
  }

  get credentials(): string {
    return this.#options?.credentials ?? 'same-origin'
  }

  get mode(): string {
    return this.#options?.mode ?? 'cors'
  }

  get destination(): string {
    return ''
  }

  get referrer(): string {
    return this.#options?.referrer ?? 'about:client'
  }

  get referrerPolicy(): string {
    return this.#options?.referrerPolicy ?? ''
  }

  get integrity(): string {
    return this.#options?.integrity ?? ''
  }

  get keepalive(): boolean {
    return this.#options?.keepalive ?? false
  }

  get duplex(): string {
    return 'half'
  }

  clone(): Request {
    const { mine, other } = cloneBody(this.#getBody())
    const copy = new Request(this.#getUrl())
    copy.#method = this.#getMethod()
    copy.#headers = copyHeaders(this.#getHeaders())
    copy.#redirect = this.#redirect
    copy.#options = this.#options
    copy.#body = other
    copy.#follow(this.#getSignal())
    this.#body = mine
    return copy
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    const { method, url, headers, bodyUsed } = this
    return `Request ${inspect({ method, url, headers, bodyUsed })}`
  }

  get [Symbol.toStringTag](): string {
    return 'Request'
  }

  // The getters above call these, and nothing else here calls the getters: user code may have replaced them.

  #getMethod(): string {
    return this.#source === undefined ? this.#method : this.#source.head.method
  }

  #getUrl(): string {
    return this.#source === undefined ? this.#url : this.#source.head.url
  }

  #getHeaders(): Headers {
    return (this.#headers ??= headersFromList(this.#source!.head.headers))
  }

  #getSignal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#signal = createSignal()
      const reason = this.#source?.cancelReason
      if (reason !== undefined) abortSignal(this.#signal, reason)
    }
    return this.#signal
  }

  #getBody(): Body | null {
    if (this.#body === undefined) {
      this.#body = this.#source === undefined ? null : bodyOfHost(this.#source)
    }
    return this.#body
  }

  #follow(signal: AbortSignal): void {
    if (!isAbortSignal(signal)) throw new SafeTypeError('signal must be an AbortSignal.')
    const mine = (this.#signal = createSignal())
    if (isAborted(signal)) abortSignal(mine, reasonOf(signal))
    else this.#unfollow = followSignal(signal, () => abortSignal(mine, reasonOf(signal)))
  }

  #takeOptions(init: RequestInit | null | undefined): void {
    if (init === undefined || init === null) return
    const { redirect } = init
    if (redirect !== undefined) {
      if (redirect !== 'follow' && redirect !== 'error' && redirect !== 'manual') {
        throw new SafeTypeError(`redirect must be follow, error or manual, not ${jsonStringify(redirect)}.`)
      }
      this.#redirect = redirect
    }
    for (let index = 0; index < PASSED_ON.length; index++) {
      const name = PASSED_ON[index]!
      const value = init[name]
      if (value === undefined) continue
      // A copy: what it was is shared with the request that this one was made from.
      this.#options = { __proto__: null, ...this.#options } as PassedOn
      setOwn(this.#options, name, name === 'referrer' ? checkReferrer(toText(value)) : value)
    }
  }

  #takeBody(from: Request | undefined, init: RequestInit | null | undefined): void {
    const given = init?.body
    if (given !== undefined && given !== null) {
      const { body, type } = extractBody(given)
      if (type !== '') implyContentType(this.#headers!, type)
      this.#body = body
    } else {
      const body = given === null || from === undefined ? null : from.#getBody()
      this.#body = body === null ? null : takeBody(body)
    }
    if (this.#body !== null && (this.#method === 'GET' || this.#method === 'HEAD')) {
      throw new SafeTypeError(`A ${this.#method} request cannot have a body.`)
    }
  }
}

function bodyOfHost({ bodyKind, body, channel }: HostRequest): Body | null {
  return bodyKind === 'stream' ? bodyOfChannel(channel!) : bodyFromBridge(bodyKind, body)
}

mixBody(Request.prototype, bodyOfRequest, contentTypeOf)

function checkUrl(text: string): string {
  const { requireUrl, serializeUrl } = library('url')
  const url = requireUrl(text)
  if (url.username !== '' || url.password !== '') throw new SafeTypeError('A request URL cannot have a user name or password.')
  return serializeUrl(url)
}

/** There is no page whose origin it would have to share. */
function checkReferrer(text: string): string {
  if (text === '' || text === 'about:client') return text
  const { requireUrl, serializeUrl } = library('url')
  return serializeUrl(requireUrl(text))
}

function checkMethod(method: string): string {
  if (!matches(method, TOKEN)) throw new SafeTypeError(`${jsonStringify(method)} is no method.`)
  if (matches(method, FORBIDDEN_METHODS)) throw new SafeTypeError(`The method ${method} is not allowed.`)
  return matches(method, METHODS) ? stringToUpperCase(method) : method
}
