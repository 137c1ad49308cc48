import type { Invocation } from '../invocation.ts'
import {
  isArray,
  isInstance,
  isInteger,
  jsonStringify,
  type List,
  numberToString,
  objectKeys,
  SafeList,
  SafeRangeError,
  stringSlice,
} from '../language/primordials.ts'
import { latin1FromBase64 } from '../web-api/encoding.ts'
import { describeError } from '../web-api/errors.ts'
import { headerName, headersJson, headersProblem, headerValue } from '../web-api/fetch/headers.ts'
import { isNullBodyStatus } from '../web-api/fetch/response.ts'

const JSON_HEAD = '{"status":200,"headers":[["content-type","application/json"]]}'

const SHOWN_CHARS = 100

type Values = Record<string, unknown> | null | undefined

interface LambdaResponse {
  readonly statusCode: unknown
  readonly headers?: Values
  readonly multiValueHeaders?: Values
  readonly cookies?: unknown
  readonly body?: unknown
  readonly isBase64Encoded?: unknown
}

/**
 * Answers with what a Lambda handler gave, as API Gateway does for payload 2.0. An object with `statusCode` is the response; any
 * other value is the JSON body of a 200. Lambda writes `undefined` as `null`, so a handler that returns nothing answers `null`.
 * Where a response names no content type it is application/json, as for Lambda's function URLs.
 *
 * Reads each property once: a getter that gives something else the second time changes nothing. May throw what a getter throws.
 */
export function answerLambda(invocation: Invocation, value: unknown): void {
  if (typeof value === 'object' && value !== null) {
    const { statusCode } = value as LambdaResponse
    if (statusCode !== undefined) return answerResponse(invocation, statusCode, value as LambdaResponse)
  }
  answerJson(invocation, value ?? null)
}

function answerJson(invocation: Invocation, value: unknown): void {
  let json: string | undefined
  try {
    json = jsonStringify(value)
  } catch (error) {
    const { message, stack } = describeError(error)
    return invocation.refuse(
      isInstance(SafeRangeError, error)
        ? `The result cannot be written as JSON, it is nested too deeply or too large: ${message}.`
        : `The result cannot be written as JSON: ${message}.`,
      stack,
    )
  }
  if (json === undefined) invocation.refuse(`The handler returned a ${typeof value}, which cannot be written as JSON.`)
  else invocation.answer(JSON_HEAD, 'text', json)
}

function answerResponse(invocation: Invocation, statusCode: unknown, response: LambdaResponse): void {
  const status = typeof statusCode === 'string' ? +statusCode : statusCode
  if (typeof status !== 'number' || !isInteger(status) || status < 200 || status > 599) {
    invocation.refuse(`statusCode must be a whole number from 200 to 599, not ${shown(statusCode)}.`)
    return
  }
  const { body, headers, multiValueHeaders, cookies, isBase64Encoded } = response
  if (body !== undefined && body !== null && typeof body !== 'string') {
    invocation.refuse(`The body of a Lambda response must be a string, not ${shown(body)}: use JSON.stringify.`)
    return
  }
  let list: List<string>
  try {
    list = headerList(headers, multiValueHeaders, cookies)
  } catch (error) {
    return invocation.refuse(describeError(error).message)
  }
  let bytes: string | undefined
  try {
    if (isBase64Encoded === true && typeof body === 'string') bytes = latin1FromBase64(body)
  } catch {
    return invocation.refuse('The body is not valid base64.')
  }
  const hasBody = !isNullBodyStatus(status) && body !== undefined && body !== null
  if (hasBody && !hasName(list, 'content-type', list.length)) add(list, 'content-type', 'application/json')
  const problem = headersProblem(list)
  if (problem !== undefined) return invocation.refuse(problem)
  const head = `{"status":${status},"headers":${headersJson(list)}}`
  if (!hasBody) invocation.answer(head, 'none', '')
  else if (bytes === undefined) invocation.answer(head, 'text', body)
  else invocation.answer(head, 'bytes', bytes)
}

/** Names and values in turn. Of a name that stands in both, the multi-value form counts. */
function headerList(single: Values, multi: Values, cookies: unknown): List<string> {
  const list = new SafeList<string>()
  if (multi !== undefined && multi !== null) {
    const names = objectKeys(multi)
    for (let index = 0; index < names.length; index++) {
      const values = multi[names[index]!]
      if (isArray(values)) addAll(list, names[index]!, values)
      else add(list, names[index]!, values)
    }
  }
  const multiCount = list.length
  if (single !== undefined && single !== null) {
    const names = objectKeys(single)
    for (let index = 0; index < names.length; index++) {
      const name = names[index]!
      const value = single[name]
      if (value !== undefined && value !== null && !hasName(list, headerName(name), multiCount)) add(list, name, value)
    }
  }
  if (isArray(cookies)) addAll(list, 'set-cookie', cookies)
  return list
}

function hasName(list: List<string>, name: string, end: number): boolean {
  for (let index = 0; index < end; index += 2) {
    if (list[index] === name) return true
  }
  return false
}

function addAll(list: List<string>, name: string, values: readonly unknown[]): void {
  for (let index = 0; index < values.length; index++) add(list, name, values[index])
}

function add(list: List<string>, name: string, value: unknown): void {
  const key = headerName(name)
  const text = headerValue(value, key)
  list[list.length] = key
  list[list.length] = text
}

function shown(value: unknown): string {
  if (typeof value === 'string') return jsonStringify(stringSlice(value, 0, SHOWN_CHARS))
  return typeof value === 'number' ? numberToString(value) : `a value of type ${typeof value}`
}
