import type { FetchedHead } from '@carpool/core'
import { jsonStringify, SafeRangeError, SafeTypeError, trunc } from '../../language/primordials.ts'
import { matches, toNumber, toText } from '../../language/values.ts'
import { customInspect } from '../console/inspect.ts'
import { library, loadedLibrary } from '../host.ts'
import { Body, type BodyInit, type BodyMembers, cloneBody, extractBody, mixBody, TEXT_TYPE } from './body.ts'
import {
  copyHeaders,
  Headers,
  headersFromList,
  type HeadersInit,
  headersJson,
  headersProblem,
  implyContentType,
  listOf,
  makeImmutable,
  valueOfHeader,
} from './headers.ts'

export interface ResponseInit {
  status?: number
  statusText?: string
  headers?: HeadersInit
  /** An end of a WebSocketPair, for whoever asked for a WebSocket; with status 101. */
  webSocket?: unknown
}

const JSON_TYPE = 'application/json'
const STATUS_TEXT = /^[\t \x21-\x7e\x80-\xff]*$/

export let isResponse: (value: unknown) => value is Response
export let bodyOfResponse: (response: Response) => Body | null
export let statusOfResponse: (response: Response) => number
/** What is wrong with the headers, for a response that leaves; undefined if nothing is. */
export let headersProblemOf: (response: Response) => string | undefined
/** Status and headers as the JSON text of a ResponseHead. */
export let headJsonOf: (response: Response) => string
/** The WebSocket that it gives to the client; null if it is of another status than 101. */
export let webSocketOf: (response: Response) => unknown
export let responseOfFetch: (fetched: FetchedHead, body: Body | null) => Response
let contentTypeOf: (response: Response) => string | null

export class Response implements BodyMembers {
  // Put on the prototype by mixBody.
  declare readonly body: BodyMembers['body']
  declare readonly bodyUsed: boolean
  declare readonly arrayBuffer: BodyMembers['arrayBuffer']
  declare readonly blob: BodyMembers['blob']
  declare readonly bytes: BodyMembers['bytes']
  declare readonly formData: BodyMembers['formData']
  declare readonly json: BodyMembers['json']
  declare readonly text: BodyMembers['text']

  #status = 200
  #statusText = ''
  /** Absent while there is none but for a content type of ours that the body implies. */
  #headers: Headers | undefined
  #impliedType: '' | typeof TEXT_TYPE | typeof JSON_TYPE = ''
  #body: Body | null = null
  #type = 'default'
  #url = ''
  #redirected = false
  #webSocket: unknown = null

  static {
    isResponse = (value): value is Response => typeof value === 'object' && value !== null && #status in value
    bodyOfResponse = (response) => response.#body
    statusOfResponse = (response) => response.#status
    webSocketOf = (response) => response.#webSocket
    contentTypeOf = (response) => valueOfHeader(response.#getHeaders(), 'content-type')
    headersProblemOf = (response) => (response.#headers === undefined ? undefined : headersProblem(listOf(response.#headers)))
    headJsonOf = (response) => {
      const headers =
        response.#headers === undefined
          ? response.#impliedType === ''
            ? '[]'
            : `[["content-type","${response.#impliedType}"]]`
          : headersJson(listOf(response.#headers))
      return `{"status":${response.#status},"headers":${headers}}`
    }
    responseOfFetch = ({ status, statusText, headers, url, redirected }, body) => {
      const response = new Response()
      response.#status = status
      response.#statusText = statusText
      response.#headers = makeImmutable(headersFromList(headers))
      response.#url = url
      response.#redirected = redirected
      response.#type = 'basic'
      response.#body = body
      return response
    }
  }

  constructor(body?: BodyInit, init?: ResponseInit | null) {
    if (init !== undefined && init !== null) this.#init(init)
    if (body === undefined || body === null) return
    if (isNullBodyStatus(this.#status)) throw new SafeTypeError(`A response of status ${this.#status} cannot have a body.`)
    if (typeof body === 'string') {
      this.#body = new Body(body)
      this.#imply(TEXT_TYPE)
    } else {
      const extracted = extractBody(body)
      this.#body = extracted.body
      // It may be a text of user code, so it has to pass as any other header.
      if (extracted.type !== '') implyContentType(this.#getHeaders(), extracted.type)
    }
  }

  static error(): Response {
    const response = new Response()
    response.#type = 'error'
    response.#status = 0
    response.#headers = makeImmutable(new Headers())
    return response
  }

  static json(data: unknown, init?: ResponseInit | null): Response {
    const text = jsonStringify(data) as string | undefined
    if (text === undefined) throw new SafeTypeError('The value cannot be written as JSON.')
    const response = new Response(null, init)
    if (isNullBodyStatus(response.#status)) {
      throw new SafeTypeError(`A response of status ${response.#status} cannot have a body.`)
    }
    response.#body = new Body(text)
    response.#imply(JSON_TYPE)
    return response
  }

  static redirect(url: unknown, status = 302): Response {
    const { requireUrl, serializeUrl } = library('url')
    const location = serializeUrl(requireUrl(url))
    if (status !== 301 && status !== 302 && status !== 303 && status !== 307 && status !== 308) {
      throw new SafeRangeError(`${status} is no redirect status: use 301, 302, 303, 307 or 308.`)
    }
    const response = new Response(null, { status, headers: { location } })
    makeImmutable(response.#headers!)
    return response
  }

  get type(): string {
    return this.#type
  }

  get url(): string {
    return this.#url
  }

  get redirected(): boolean {
    return this.#redirected
  }

  get status(): number {
    return this.#status
  }

  get ok(): boolean {
    return this.#status >= 200 && this.#status <= 299
  }

  get statusText(): string {
    return this.#statusText
  }

  get headers(): Headers {
    return this.#getHeaders()
  }

  get webSocket(): unknown {
    return this.#webSocket
  }

  clone(): Response {
    if (this.#webSocket !== null) throw new SafeTypeError('A response with a WebSocket cannot be cloned.')
    const { mine, other } = cloneBody(this.#body)
    const copy = new Response()
    copy.#status = this.#status
    copy.#statusText = this.#statusText
    copy.#headers = copyHeaders(this.#getHeaders())
    copy.#type = this.#type
    copy.#url = this.#url
    copy.#redirected = this.#redirected
    copy.#body = other
    this.#body = mine
    return copy
  }

  [customInspect](_depth: number, _options: object, inspect: (value: unknown) => string): string {
    const { status, statusText, ok, type, url, redirected, headers, bodyUsed } = this
    return `Response ${inspect({ status, statusText, ok, type, url, redirected, headers, bodyUsed })}`
  }

  get [Symbol.toStringTag](): string {
    return 'Response'
  }

  #getHeaders(): Headers {
    if (this.#headers === undefined) {
      this.#headers = new Headers()
      if (this.#impliedType !== '') implyContentType(this.#headers, this.#impliedType)
    }
    return this.#headers
  }

  #init(init: ResponseInit): void {
    const { status, statusText, headers } = init
    if (status !== undefined) {
      // As WebIDL converts to an unsigned short.
      const given = toNumber(status)
      const code = trunc(given) & 0xffff
      if (code === 101) this.#takeWebSocket(init.webSocket)
      else if (code < 200 || code > 599)
        throw new SafeRangeError(`The status of a response must be from 200 to 599, not ${given}.`)
      this.#status = code
    }
    if (statusText !== undefined) {
      const text = toText(statusText)
      if (!matches(text, STATUS_TEXT)) throw new SafeTypeError('The status text has characters that it may not have.')
      this.#statusText = text
    }
    if (headers !== undefined) this.#headers = new Headers(headers)
  }

  #takeWebSocket(given: unknown): void {
    if (loadedLibrary('web-sockets')?.isUsable(given) !== true) {
      throw new SafeRangeError('A response of status 101 needs a webSocket: an end of a WebSocketPair that is not in use.')
    }
    this.#webSocket = given
  }

  #imply(type: typeof TEXT_TYPE | typeof JSON_TYPE): void {
    if (this.#headers === undefined) this.#impliedType = type
    else implyContentType(this.#headers, type)
  }
}

mixBody(Response.prototype, bodyOfResponse, contentTypeOf)

/** A response of such a status has no body, not even an empty one. */
export function isNullBodyStatus(status: number): boolean {
  return status === 204 || status === 205 || status === 304 || status === 101 || status === 103
}
