const NULL_BODY_STATUSES = new Set([204, 205, 304])

type HeaderValue = string | number | boolean | null | undefined

interface UncheckedResponse {
  readonly statusCode: unknown
  readonly headers?: Record<string, HeaderValue> | null
  readonly multiValueHeaders?: Record<string, HeaderValue | readonly HeaderValue[]> | null
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
  const json = JSON.stringify(result ?? null) as string | undefined
  if (json === undefined) throw new TypeError(`The handler returned a ${typeof result}, which cannot be written as JSON.`)
  return new Response(json, { headers: { 'content-type': 'application/json' } })
}

function fromLambdaResponse(response: UncheckedResponse): Response {
  const { body } = response
  const status = typeof response.statusCode === 'string' ? Number(response.statusCode) : response.statusCode
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 200 || status > 599) {
    throw new TypeError(`statusCode must be a whole number from 200 to 599, not ${JSON.stringify(response.statusCode)}.`)
  }
  if (body !== undefined && body !== null && typeof body !== 'string') {
    throw new TypeError(`The body of a Lambda response must be a string, not a ${typeof body}: use JSON.stringify.`)
  }
  const headers = headersOf(response)
  if (NULL_BODY_STATUSES.has(status) || body === undefined || body === null) return new Response(null, { status, headers })
  if (!headers.has('content-type')) headers.set('content-type', 'application/json')
  return new Response(response.isBase64Encoded === true ? Buffer.from(body, 'base64') : body, { status, headers })
}

/** Of a name that stands in both, the multi-value form counts. */
function headersOf({ headers: single, multiValueHeaders, cookies }: UncheckedResponse): Headers {
  const headers = new Headers()
  for (const [name, values] of Object.entries(multiValueHeaders ?? {})) {
    for (const value of Array.isArray(values) ? values : [values]) headers.append(name, String(value))
  }
  const given = new Set(headers.keys())
  for (const [name, value] of Object.entries(single ?? {})) {
    if (value !== undefined && value !== null && !given.has(name.toLowerCase())) headers.append(name, String(value))
  }
  if (Array.isArray(cookies)) for (const cookie of cookies) headers.append('set-cookie', String(cookie))
  return headers
}
