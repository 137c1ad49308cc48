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
 * The response for what a Lambda handler gave, as the host makes it: an object with `statusCode` is the response; any other value is
 * the JSON body of a 200, nothing being `null`. Where a response names no content type it is application/json.
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
