import type { HeaderList } from '@carpool/core'
import type { GuestOptions } from '../../bridge.ts'
import { base64FromLatin1 } from '../encoding/base64.ts'
import type { Invocation } from '../invocation.ts'
import {
  arrayOf,
  dateToISOString,
  hasOwn,
  type List,
  SafeDate,
  SafeList,
  setOwn,
  stringIndexOf,
  stringSlice,
  stringSplit,
} from '../primordials.ts'
import { parseForm } from '../url/form-urlencoded.ts'

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The request as an event of API Gateway's HTTP APIs, payload format 2.0. */
export function lambdaEvent(invocation: Invocation, options: GuestOptions): object {
  const { head, bodyKind, body } = invocation
  const { headers, cookies } = splitHeaders(head.headers)
  const { path, query } = splitUrl(head.url)
  const domainName = ownOr(headers, 'host')
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    ...(cookies.length > 0 && { cookies: arrayOf(cookies) }),
    headers,
    ...(query !== '' && { queryStringParameters: joinQuery(query) }),
    requestContext: {
      accountId: '000000000000',
      apiId: options.functionName,
      domainName,
      domainPrefix: stringSplit(domainName, '.')[0]!,
      http: {
        method: head.method,
        path,
        protocol: 'HTTP/1.1',
        sourceIp: head.clientIp,
        userAgent: ownOr(headers, 'user-agent'),
      },
      requestId: head.invocationId,
      routeKey: '$default',
      stage: '$default',
      time: commonLogTime(invocation.startedMs),
      timeEpoch: invocation.startedMs,
    },
    ...(bodyKind !== 'none' && { body: bodyKind === 'bytes' ? base64FromLatin1(body) : body }),
    isBase64Encoded: bodyKind === 'bytes',
  }
}

/** Joins headers of the same name with commas; cookies stand in a list of their own, as the gateway has them. */
function splitHeaders(list: HeaderList): { headers: Record<string, string>; cookies: List<string> } {
  const headers: Record<string, string> = {}
  const cookies = new SafeList<string>()
  for (let index = 0; index < list.length; index++) {
    const pair = list[index]!
    if (pair[0] !== 'cookie') {
      define(headers, pair[0], pair[1])
      continue
    }
    const parts = stringSplit(pair[1], '; ')
    for (let at = 0; at < parts.length; at++) cookies[cookies.length] = parts[at]!
  }
  return { headers, cookies }
}

function ownOr(headers: Record<string, string>, name: string): string {
  return hasOwn(headers, name) ? headers[name]! : ''
}

function joinQuery(query: string): Record<string, string> {
  const parameters: Record<string, string> = {}
  const pairs = parseForm(query)
  for (let index = 0; index < pairs.length; index++) define(parameters, pairs[index]![0], pairs[index]![1])
  return parameters
}

/** Sets, or joins with a comma to what is there; a name such as `__proto__` is a name like any other. */
function define(target: Record<string, string>, name: string, value: string): void {
  const joined = hasOwn(target, name) ? `${target[name]},${value}` : value
  setOwn(target, name, joined)
}

function splitUrl(url: string): { path: string; query: string } {
  const start = stringIndexOf(url, '/', stringIndexOf(url, '://') + 3)
  const rest = start === -1 ? '/' : stringSlice(url, start)
  const mark = stringIndexOf(rest, '?')
  return mark === -1 ? { path: rest, query: '' } : { path: stringSlice(rest, 0, mark), query: stringSlice(rest, mark + 1) }
}

/** Such as `12/Mar/2020:19:03:58 +0000`. */
function commonLogTime(timeMs: number): string {
  const iso = dateToISOString(new SafeDate(timeMs))
  const month = MONTHS[+stringSlice(iso, 5, 7) - 1]
  return `${stringSlice(iso, 8, 10)}/${month}/${stringSlice(iso, 0, 4)}:${stringSlice(iso, 11, 19)} +0000`
}
