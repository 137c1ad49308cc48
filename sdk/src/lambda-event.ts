import type { LambdaEvent } from './lambda-handler.ts'

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
