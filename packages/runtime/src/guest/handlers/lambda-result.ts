import { latin1FromBase64 } from '../encoding/base64.ts'
import { headersJson } from '../fetch/headers.ts'
import { headerName, headerValue } from '../fetch/header-text.ts'
import { isNullBodyStatus } from '../fetch/response.ts'
import type { Invocation } from '../invocation.ts'
import { isArray, isInteger, jsonStringify, numberToString, objectKeys, stringSlice } from '../primordials.ts'

const JSON_HEAD = '{"status":200,"headers":[["content-type","application/json"]]}'

const SHOWN_CHARS = 100

interface LambdaResponse {
  readonly statusCode: unknown
  readonly headers?: Record<string, unknown> | null
  readonly multiValueHeaders?: Record<string, unknown> | null
  readonly cookies?: unknown
  readonly body?: unknown
  readonly isBase64Encoded?: unknown
}

/**
 * Answers with what a Lambda handler gave, as API Gateway does for payload 2.0: an object with `statusCode` is the response; any other
 * value is the JSON body of a 200. Lambda writes `undefined` as `null`, so a handler that returns nothing answers `null`. Where a
 * response names no content type it is application/json, as for Lambda's function URLs.
 */
export function answerLambda(invocation: Invocation, value: unknown): void {
  if (typeof value === 'object' && value !== null && (value as { statusCode?: unknown }).statusCode !== undefined) {
    answerResponse(invocation, value as LambdaResponse)
    return
  }
  const json = jsonStringify(value ?? null) as string | undefined
  if (json === undefined) invocation.refuse(`The handler returned a ${typeof value}, which cannot be written as JSON.`)
  else invocation.answer(JSON_HEAD, 'text', json)
}

function answerResponse(invocation: Invocation, response: LambdaResponse): void {
  const status = typeof response.statusCode === 'string' ? +response.statusCode : response.statusCode
  if (typeof status !== 'number' || !isInteger(status) || status < 200 || status > 599) {
    invocation.refuse(`statusCode must be a whole number from 200 to 599, not ${shown(response.statusCode)}.`)
    return
  }
  const { body } = response
  if (body !== undefined && body !== null && typeof body !== 'string') {
    invocation.refuse(`The body of a Lambda response must be a string, not ${shown(body)}: use JSON.stringify.`)
    return
  }
  let list: string[]
  let bytes: string | undefined
  try {
    list = headerList(response)
    if (response.isBase64Encoded === true && typeof body === 'string') bytes = latin1FromBase64(body)
  } catch (error) {
    invocation.refuse(
      bytes === undefined && error instanceof SyntaxError ? 'The body is not valid base64.' : (error as Error).message,
    )
    return
  }
  if (isNullBodyStatus(status) || body === undefined || body === null) {
    invocation.answer(`{"status":${status},"headers":${headersJson(list)}}`, 'none', '')
    return
  }
  if (!hasName(list, 'content-type')) add(list, 'content-type', 'application/json')
  const head = `{"status":${status},"headers":${headersJson(list)}}`
  if (bytes === undefined) invocation.answer(head, 'text', body)
  else invocation.answer(head, 'bytes', bytes)
}

/** Names and values in turn. Of a name that stands in both, the multi-value form counts. */
function headerList(response: LambdaResponse): string[] {
  const list: string[] = []
  const multi = response.multiValueHeaders ?? {}
  const names = objectKeys(multi)
  for (let index = 0; index < names.length; index++) {
    const values = multi[names[index]!]
    if (isArray(values)) for (let at = 0; at < values.length; at++) add(list, names[index]!, values[at])
    else add(list, names[index]!, values)
  }
  const multiCount = list.length
  const single = response.headers ?? {}
  const keys = objectKeys(single)
  for (let index = 0; index < keys.length; index++) {
    const name = keys[index]!
    const value = single[name]
    if (value !== undefined && value !== null && !hasName(list, headerName(name), multiCount)) add(list, name, value)
  }
  const { cookies } = response
  if (isArray(cookies)) for (let index = 0; index < cookies.length; index++) add(list, 'set-cookie', cookies[index])
  return list
}

function hasName(list: readonly string[], name: string, end = list.length): boolean {
  for (let index = 0; index < end; index += 2) {
    if (list[index] === name) return true
  }
  return false
}

function add(list: string[], name: string, value: unknown): void {
  const key = headerName(name)
  const text = headerValue(value, key)
  list[list.length] = key
  list[list.length] = text
}

function shown(value: unknown): string {
  if (typeof value === 'string') return jsonStringify(stringSlice(value, 0, SHOWN_CHARS))
  return typeof value === 'number' ? numberToString(value) : `a value of type ${typeof value}`
}
