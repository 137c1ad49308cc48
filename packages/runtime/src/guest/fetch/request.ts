import type { BodyKind, InvokeHead } from '../../bridge.ts'
import { customInspect } from '../console/inspect.ts'
import { abortSignal, createSignal, followSignal, isAbortSignal, type AbortSignal } from '../events/abort-signal.ts'
import { regExpExec, SafeTypeError, stringToUpperCase } from '../primordials.ts'
import { parseUrl, serializeUrl } from '../url/parse-url.ts'
import { type Body, type BodyInit, type BodyMembers, bodyFromBridge, cloneBody, extractBody, mixBody, takeBody } from './body.ts'
import { copyHeaders, Headers, headersFromList, type HeadersInit } from './headers.ts'
import { toText } from '../to-text.ts'

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
  /** Whether the invocation was canceled already. */
  readonly canceled: boolean
}

/** Proves to the constructor that `input` is a HostRequest. */
const FROM_HOST = Symbol('from host')
const METHODS = /^(?:DELETE|GET|HEAD|OPTIONS|POST|PUT)$/i
const PASSED_ON = ['cache', 'credentials', 'mode', 'referrer', 'referrerPolicy', 'integrity', 'keepalive'] as const

export let requestFromHost: (source: HostRequest) => Request
/** Aborts the signal of a request that the host sent. */
export let abortRequest: (request: Request, reason: unknown) => void
export let isRequest: (value: unknown) => value is Request
export let bodyOfRequest: (request: Request) => Body | null
/** Ends the request's interest in the signal that it was made with, which may live much longer. */
export let releaseSignal: (request: Request) => void

export class Request implements BodyMembers {
  // Put on the prototype by mixBody.
  declare readonly body: BodyMembers['body']
  declare readonly bodyUsed: boolean
  declare readonly arrayBuffer: BodyMembers['arrayBuffer']
  declare readonly bytes: BodyMembers['bytes']
  declare readonly formData: BodyMembers['formData']
  declare readonly json: BodyMembers['json']
  declare readonly text: BodyMembers['text']

  /** Set for the request of an invocation, whose parts are filled in from it as they are asked for. */
  readonly #source: HostRequest | undefined
  #method = ''
  #url = ''
  #headers: Headers | undefined
  #body: Body | null | undefined
  #signal: AbortSignal | undefined
  #unfollow: (() => void) | undefined
  #options: Pick<RequestInit, 'redirect' | (typeof PASSED_ON)[number]> | undefined

  static {
    requestFromHost = (source) => new Request(source, FROM_HOST as unknown as RequestInit)
    abortRequest = (request, reason) => {
      if (request.#signal !== undefined) abortSignal(request.#signal, reason)
    }
    isRequest = (value): value is Request => typeof value === 'object' && value !== null && #source in value
    bodyOfRequest = (request) => request.#getBody()
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
    this.#url = from === undefined ? checkUrl(toText(input)) : from.url
    if (from !== undefined) this.#options = from.#options
    this.#method = init?.method === undefined ? (from?.method ?? 'GET') : checkMethod(toText(init.method))
    if (init?.headers !== undefined) this.#headers = new Headers(init.headers)
    else this.#headers = from === undefined ? new Headers() : copyHeaders(from.headers)
    this.#takeOptions(init)
    const signal = init?.signal === undefined ? from?.signal : init.signal
    if (signal !== undefined && signal !== null) this.#follow(signal)
    this.#takeBody(from, init)
  }

  get method(): string {
    return this.#source === undefined ? this.#method : this.#source.head.method
  }

  get url(): string {
    return this.#source === undefined ? this.#url : this.#source.head.url
  }

  get headers(): Headers {
    return (this.#headers ??= headersFromList(this.#source!.head.headers))
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#signal = createSignal()
      if (this.#source?.canceled) abortSignal(this.#signal)
    }
    return this.#signal
  }

  get redirect(): Redirect {
    return this.#options?.redirect ?? 'follow'
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
    const [mine, other] = cloneBody(this.#getBody())
    const copy = new Request(this.url)
    copy.#method = this.method
    copy.#headers = copyHeaders(this.headers)
    copy.#options = this.#options
    copy.#body = other
    copy.#follow(this.signal)
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

  #getBody(): Body | null {
    if (this.#body === undefined) {
      this.#body = this.#source === undefined ? null : bodyFromBridge(this.#source.bodyKind, this.#source.body)
    }
    return this.#body
  }

  #follow(signal: AbortSignal): void {
    if (!isAbortSignal(signal)) throw new SafeTypeError('signal must be an AbortSignal.')
    const mine = (this.#signal = createSignal())
    if (signal.aborted) abortSignal(mine, signal.reason)
    else this.#unfollow = followSignal(signal, () => abortSignal(mine, signal.reason))
  }

  #takeOptions(init: RequestInit | null | undefined): void {
    if (init === undefined || init === null) return
    const { redirect } = init
    if (redirect !== undefined) {
      if (redirect !== 'follow' && redirect !== 'error' && redirect !== 'manual') {
        throw new SafeTypeError(`redirect must be follow, error or manual, not ${JSON.stringify(redirect)}.`)
      }
      this.#options = { ...this.#options, redirect }
    }
    for (const name of PASSED_ON) {
      if (init[name] !== undefined) this.#options = { ...this.#options, [name]: init[name] }
    }
  }

  #takeBody(from: Request | undefined, init: RequestInit | null | undefined): void {
    const given = init?.body
    if (given !== undefined && given !== null) {
      const { body, type } = extractBody(given)
      if (type !== '' && !this.#headers!.has('content-type')) this.#headers!.append('content-type', type)
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

mixBody(Request.prototype, bodyOfRequest, (request) => request.headers.get('content-type'))

function checkUrl(text: string): string {
  const url = parseUrl(text.toWellFormed())
  if (url === undefined) throw new SafeTypeError(`Invalid URL: ${JSON.stringify(text.slice(0, 200))}`)
  if (url.username !== '' || url.password !== '') throw new SafeTypeError('A request URL cannot have a user name or password.')
  return serializeUrl(url)
}

function checkMethod(method: string): string {
  if (regExpExec(/^[!#$%&'*+\-.^_`|~\dA-Za-z]+$/, method) === null)
    throw new SafeTypeError(`${JSON.stringify(method)} is no method.`)
  if (regExpExec(/^(?:CONNECT|TRACE|TRACK)$/i, method) !== null) throw new SafeTypeError(`The method ${method} is not allowed.`)
  return regExpExec(METHODS, method) === null ? method : stringToUpperCase(method)
}
