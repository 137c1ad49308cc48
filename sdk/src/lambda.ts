/** An HTTP request as AWS Lambda gets it: API Gateway's event of payload format 2.0. */
export interface LambdaEvent {
  readonly version: '2.0'
  readonly routeKey: string
  readonly rawPath: string
  /** Without the question mark. */
  readonly rawQueryString: string
  readonly cookies?: readonly string[]
  /** Names in lower case; values of one name are joined with commas. */
  readonly headers: Readonly<Record<string, string>>
  readonly queryStringParameters?: Readonly<Record<string, string>>
  readonly requestContext: {
    readonly accountId: string
    readonly apiId: string
    readonly domainName: string
    readonly domainPrefix: string
    readonly http: {
      readonly method: string
      readonly path: string
      readonly protocol: string
      readonly sourceIp: string
      readonly userAgent: string
    }
    readonly requestId: string
    readonly routeKey: string
    readonly stage: string
    /** Such as `12/Mar/2020:19:03:58 +0000`. */
    readonly time: string
    /** Milliseconds since 1970. */
    readonly timeEpoch: number
  }
  /** Absent if the request has none. */
  readonly body?: string
  /** Whether `body` is base64: so it is unless the bytes are UTF-8 text. */
  readonly isBase64Encoded: boolean
}

/** The second argument of a Lambda handler. */
export interface LambdaContext {
  readonly functionName: string
  readonly functionVersion: string
  readonly invokedFunctionArn: string
  readonly memoryLimitInMB: string
  readonly awsRequestId: string
  readonly logGroupName: string
  readonly logStreamName: string
  /** Without effect. */
  callbackWaitsForEmptyEventLoop: boolean
  getRemainingTimeInMillis(): number
}

/** A result with a `statusCode` is the response. */
export interface LambdaResponse {
  /** 200 to 599. */
  readonly statusCode: number
  readonly headers?: Readonly<Record<string, string | number | boolean>>
  readonly multiValueHeaders?: Readonly<Record<string, ReadonlyArray<string | number | boolean>>>
  readonly cookies?: readonly string[]
  readonly body?: string
  readonly isBase64Encoded?: boolean
}

/** Any other value is the JSON body of a 200. */
export type LambdaResult = LambdaResponse | string | number | boolean | object | null | undefined | void

export type LambdaCallback = (error?: unknown, result?: LambdaResult) => void

/** `export const handler`. One that declares three parameters answers by the callback, or by a promise. */
export type LambdaHandler<Event = LambdaEvent> = (
  event: Event,
  context: LambdaContext,
  callback: LambdaCallback,
) => LambdaResult | Promise<LambdaResult>

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

interface EventOrigin {
  readonly invocationId: string
  readonly functionName: string
  readonly startedMs: number
}

/**
 * The request as an event of API Gateway's HTTP APIs, payload format 2.0, as the host writes it; only
 * headers that the way over HTTP adds are missing, such as `content-length` and `x-forwarded-prefix`. Reads the body.
 */
export async function toLambdaEvent(request: Request, origin: EventOrigin): Promise<LambdaEvent> {
  const url = new URL(request.url)
  const bytes = await request.arrayBuffer()
  const text = decodeUtf8(bytes)
  const headers = Object.fromEntries([['host', url.host], ...request.headers].filter(([name]) => name !== 'cookie'))
  const cookies = request.headers.get('cookie')?.split('; ')
  const domainName = headers['host'] ?? ''
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: url.pathname,
    rawQueryString: url.search.slice(1),
    ...(cookies && { cookies }),
    headers,
    ...(url.search.length > 1 && { queryStringParameters: joinQuery(url.searchParams) }),
    requestContext: {
      accountId: '000000000000',
      apiId: origin.functionName,
      domainName,
      domainPrefix: domainName.split('.')[0] ?? '',
      http: {
        method: request.method,
        path: url.pathname,
        protocol: 'HTTP/1.1',
        sourceIp: '127.0.0.1',
        userAgent: headers['user-agent'] ?? '',
      },
      requestId: origin.invocationId,
      routeKey: '$default',
      stage: '$default',
      time: commonLogTime(new Date(origin.startedMs)),
      timeEpoch: origin.startedMs,
    },
    ...(bytes.byteLength > 0 && { body: text ?? Buffer.from(bytes).toString('base64') }),
    isBase64Encoded: text === undefined,
  }
}

function decodeUtf8(bytes: ArrayBuffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Values of one name are joined with commas. */
function joinQuery(query: URLSearchParams): Record<string, string> {
  const names = [...new Set(query.keys())]
  return Object.fromEntries(names.map((name) => [name, query.getAll(name).join(',')]))
}

/** Such as `12/Mar/2020:19:03:58 +0000`. */
function commonLogTime(date: Date): string {
  const [day, time] = date.toISOString().slice(0, -5).split('T')
  const [year, month, dayOfMonth] = day!.split('-')
  return `${dayOfMonth}/${MONTHS[Number(month) - 1]}/${year}:${time} +0000`
}

const NULL_BODY_STATUSES = new Set([204, 205, 304])
const MAX_HEADERS = 100
const MAX_HEADER_BYTES = 64 * 1024
/** Speak of the connection, or belong to Carpool: the host passes none of them on. */
const NOT_PASSED_ON =
  /^(?:connection|content-length|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade|x-carpool-.*)$/i
const SHOWN_CHARS = 100

interface UncheckedResponse {
  readonly statusCode: unknown
  readonly headers?: Record<string, unknown> | null
  readonly multiValueHeaders?: Record<string, unknown> | null
  readonly cookies?: unknown
  readonly body?: unknown
  readonly isBase64Encoded?: unknown
}

/**
 * The response for what a Lambda handler gave, as the host makes it: an object with `statusCode` is the response; any other
 * value is the JSON body of a 200, nothing being `null`. Where a response names no content type it is application/json.
 * @throws TypeError if it is no valid response
 */
export function toResponse(result: unknown): Response {
  if (typeof result === 'object' && result !== null && (result as { statusCode?: unknown }).statusCode !== undefined) {
    return fromLambdaResponse(result as UncheckedResponse)
  }
  const json = jsonOf(result ?? null)
  if (json === undefined) throw new TypeError(`The handler returned a ${typeof result}, which cannot be written as JSON.`)
  return new Response(json, { headers: { 'content-type': 'application/json' } })
}

function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    const why = cause instanceof RangeError ? ', it is nested too deeply or too large' : ''
    throw new TypeError(`The result cannot be written as JSON${why}: ${String(cause)}.`, { cause })
  }
}

function fromLambdaResponse(response: UncheckedResponse): Response {
  const status = typeof response.statusCode === 'string' ? Number(response.statusCode) : response.statusCode
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`statusCode must be a whole number from 200 to 599, not ${shown(response.statusCode)}.`)
  }
  const { body } = response
  if (body !== undefined && body !== null && typeof body !== 'string') {
    throw new TypeError(`The body of a Lambda response must be a string, not ${shown(body)}: use JSON.stringify.`)
  }
  const pairs = headerPairs(response)
  const bytes = response.isBase64Encoded === true && typeof body === 'string' ? bytesOfBase64(body) : undefined
  const hasBody = !NULL_BODY_STATUSES.has(status) && body !== undefined && body !== null
  if (hasBody && !pairs.some(([name]) => name.toLowerCase() === 'content-type')) pairs.push(['content-type', 'application/json'])
  return new Response(hasBody ? (bytes ?? body) : null, { status, headers: toHeaders(pairs) })
}

/** Of a name that stands in both, the multi-value form counts. */
function headerPairs({ headers: single, multiValueHeaders, cookies }: UncheckedResponse): Array<[name: string, value: unknown]> {
  const pairs: Array<[name: string, value: unknown]> = []
  for (const [name, values] of Object.entries(multiValueHeaders ?? {})) {
    for (const value of Array.isArray(values) ? (values as unknown[]) : [values]) pairs.push([name, value])
  }
  const given = new Set(pairs.map(([name]) => name.toLowerCase()))
  for (const [name, value] of Object.entries(single ?? {})) {
    if (value !== undefined && value !== null && !given.has(name.toLowerCase())) pairs.push([name, value])
  }
  if (Array.isArray(cookies)) for (const cookie of cookies as unknown[]) pairs.push(['set-cookie', cookie])
  return pairs
}

/** @throws TypeError if there are too many, or one is not valid */
function toHeaders(pairs: ReadonlyArray<readonly [name: string, value: unknown]>): Headers {
  const headers = new Headers()
  for (const [name, value] of pairs) headers.append(name, value as string)
  if (pairs.length > MAX_HEADERS) throw new TypeError(`The response has ${pairs.length} headers; the limit is ${MAX_HEADERS}.`)
  const bytes = pairs.reduce((sum, [name, value]) => sum + name.length + String(value).length, 0)
  if (bytes > MAX_HEADER_BYTES) throw new TypeError(`The response headers have ${bytes} bytes; the limit is ${MAX_HEADER_BYTES}.`)
  for (const [name] of pairs) if (NOT_PASSED_ON.test(name)) headers.delete(name)
  return headers
}

/** @throws TypeError; `Buffer.from` would leave out what is no base64 */
function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch (cause) {
    throw new TypeError('The body is not valid base64.', { cause })
  }
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, SHOWN_CHARS))
  return typeof value === 'number' ? String(value) : `a value of type ${typeof value}`
}
