import type { HeaderList } from '@carpool/core'
import type { GuestOptions } from '../../bridge.ts'
import type { Channel } from '../channels.ts'
import { type Invocation, isThenable, whenSettled } from '../invocation.ts'
import {
  apply,
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
} from '../language/primordials.ts'
import { collectChannel } from '../web-api/channel-stream.ts'
import { base64FromLatin1, latin1FromBytes, textOfUtf8 } from '../web-api/encoding.ts'
import { parseForm } from '../web-api/url/percent-encoding.ts'
import { remainingMs } from './fetch-handler.ts'
import type { Handler } from './find-handler.ts'
import { answerLambda } from './lambda-result.ts'

/** The argument that only a handler which answers by callback declares. */
const CALLBACK_PARAMETERS = 3

/**
 * Calls a handler of AWS Lambda's form with an API Gateway event of payload 2.0. A handler with three parameters answers by the
 * callback, or by the promise it returns; any other by what it returns.
 */
export function lambdaHandler(callee: (...args: unknown[]) => unknown, options: GuestOptions): Handler {
  const usesCallback = callee.length >= CALLBACK_PARAMETERS
  return (invocation) => {
    const answer = (value: unknown): void => answerLambda(invocation, value)
    const callback = (error?: unknown, value?: unknown): void => {
      if (error !== undefined && error !== null) invocation.fail(error)
      else tryTo(answer, invocation, value)
    }
    const run = (body: EventBody): void => {
      try {
        const event = lambdaEvent(invocation, body, options)
        const result = apply(callee, undefined, [event, lambdaContext(invocation, options), callback])
        if (isThenable(result)) void whenSettled(result, invocation, answer)
        else if (!usesCallback) answer(result)
      } catch (error) {
        invocation.fail(error)
      }
    }
    if (invocation.bodyKind === 'stream') void collected(invocation.channel!, invocation, run)
    else run(invocation)
  }
}

/** A body as an event has it: as the bridge carries one that is whole. */
type EventBody = Pick<Invocation, 'bodyKind' | 'body'>

/** An event has the whole body, so the handler is called when that is there. */
async function collected(channel: Channel, invocation: Invocation, run: (body: EventBody) => void): Promise<void> {
  try {
    const bytes = await collectChannel(channel)
    const text = textOfUtf8(bytes)
    run(text === undefined ? { bodyKind: 'bytes', body: latin1FromBytes(bytes) } : { bodyKind: 'text', body: text })
  } catch (error) {
    invocation.fail(error)
  }
}

function tryTo(answer: (value: unknown) => void, invocation: Invocation, value: unknown): void {
  try {
    answer(value)
  } catch (error) {
    invocation.fail(error)
  }
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The request as an event of API Gateway's HTTP APIs, payload format 2.0. */
export function lambdaEvent(invocation: Invocation, { bodyKind, body }: EventBody, options: GuestOptions): object {
  const { head } = invocation
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

/** The second argument of a Lambda handler. Region and account are made up, in the shape that libraries parse. */
export function lambdaContext(invocation: Invocation, options: GuestOptions): object {
  const { functionName, revision, limits } = options
  return {
    functionName,
    functionVersion: revision,
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${functionName}`,
    memoryLimitInMB: `${limits.memoryMb}`,
    awsRequestId: invocation.head.invocationId,
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: `[${revision}]`,
    /** Without effect: an invocation ends with its answer, and what is still open goes on in the background. */
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => remainingMs(invocation, options),
  }
}
