import { mkdirSync, readFileSync } from 'node:fs'
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import {
  CarpoolError,
  ERRORS,
  NO_USAGE,
  type Call,
  type ErrorCode,
  type InvocationRecord,
  type LogLine,
  type ScalingDecisionInfo,
} from '@carpool/core'
import t from 'tap'
import { problemOf, startControlPlane, TOKEN } from './support/control-plane.ts'

const DEPLOY = { code: 'code', sourceMap: '{}' }
const INVOKE = { method: 'GET', path: '/', headers: [['a', '1']], bodyBase64: '' }
const PROBLEM = 'application/problem+json; charset=utf-8'

const LINE: LogLine = {
  time: '2026-01-01T00:00:00.000Z',
  level: 'info',
  stream: 'console',
  function: 'f',
  revision: '0',
  msg: 'm',
}

t.test('a deploy is taken as it is sent', async (t) => {
  const { post, deploys, send } = await startControlPlane(t)
  const request = { ...DEPLOY, limits: { memoryMb: 64 }, env: { A_1: 'x', constructor: 'y' } }
  const response = await post('/v1/functions/f/revisions', request)
  t.equal(response.status, 201)
  t.strictSame(deploys, [request])
  t.match(await (await send('/v1/functions/f')).json(), { name: 'f', limits: { memoryMb: 64 } })
  t.equal((await send('/v1/functions/f', { method: 'DELETE' })).status, 204)
  t.equal((await send('/v1/functions/f')).status, 404)
})

t.test('a body that is not right is refused, never repaired, and the message names the key', async (t) => {
  const { post, deploys } = await startControlPlane(t)
  const deploys400: Array<[body: unknown, detail: string | RegExp]> = [
    [{ ...DEPLOY, limits: { memoryMB: 64 } }, 'body.limits may not have the key "memoryMB".'],
    [{ ...DEPLOY, limits: { memoryMb: '64' } }, 'body.limits.memoryMb must be integer.'],
    [{ ...DEPLOY, limits: { memoryMb: 64.5 } }, 'body.limits.memoryMb must be integer.'],
    [{ ...DEPLOY, limits: { memoryMb: null } }, 'body.limits.memoryMb must be integer.'],
    [{ ...DEPLOY, limits: [] }, 'body.limits must be object.'],
    [{ ...DEPLOY, Env: {} }, 'body may not have the key "Env".'],
    [{ ...DEPLOY, env: { '1A': 'x' } }, 'body.env may not have the key "1A".'],
    [{ ...DEPLOY, env: { 'A=B': 'x' } }, 'body.env may not have the key "A=B".'],
    [{ ...DEPLOY, env: { A: 1 } }, 'body.env.A must be string.'],
    [{ ...DEPLOY, code: 1 }, 'body.code must be string.'],
    [{ ...DEPLOY, code: ['code'] }, 'body.code must be string.'],
    [{ code: 'code' }, /body must have required property 'sourceMap'/],
    [[DEPLOY], 'body must be object.'],
    [null, 'body must be object.'],
  ]
  for (const [body, detail] of deploys400) {
    const problem = await problemOf(await post('/v1/functions/f/revisions', body))
    t.match(problem, { status: 400, code: 'bad-request', detail, contentType: PROBLEM }, JSON.stringify(body))
  }
  t.strictSame(deploys, [])

  const invocations400: Array<[body: unknown, detail: string | RegExp]> = [
    [{ ...INVOKE, Headers: [] }, 'body may not have the key "Headers".'],
    [{ ...INVOKE, method: 'get' }, /^body\.method must match pattern/],
    [{ ...INVOKE, path: 'a' }, /^body\.path must match pattern/],
    [{ ...INVOKE, headers: [['a', 1]] }, 'body.headers.0.1 must be string.'],
    [{ ...INVOKE, headers: 'a' }, 'body.headers must be array.'],
  ]
  for (const [body, detail] of invocations400) {
    const problem = await problemOf(await post('/v1/functions/f/invocations', body))
    t.match(problem, { status: 400, code: 'bad-request', detail, contentType: PROBLEM }, JSON.stringify(body))
  }
})

t.test('what is no JSON is answered with a problem document', async (t) => {
  const { url, send, post, faults } = await startControlPlane(t)
  const path = '/v1/functions/f/revisions'
  const asJson = { 'content-type': 'application/json' }
  const cases: Array<[init: RequestInit, detail: string | RegExp]> = [
    [{ body: '{"code":', headers: asJson }, 'The body is not valid JSON.'],
    [{ body: '{"code":"","sourceMap":"","env":{"__proto__":"x"}}', headers: asJson }, 'The body is not valid JSON.'],
    [{ body: '', headers: asJson }, 'The body is empty.'],
    [{ body: JSON.stringify(DEPLOY), headers: { 'content-type': 'text/plain' } }, /application\/json/],
    [{ body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } }, /application\/json/],
    [{}, 'body must be object.'],
  ]
  for (const [init, detail] of cases) {
    const problem = await problemOf(await send(path, { method: 'POST', ...init }))
    t.match(problem, { status: 400, code: 'bad-request', detail, contentType: PROBLEM }, JSON.stringify(init))
  }
  t.match(await problemOf(await send('/v1/functions/%ff')), { status: 400, code: 'bad-request', contentType: PROBLEM })
  t.match(await problemOf(await send('/v1/nothing')), { status: 404, code: 'route-not-found', contentType: PROBLEM })

  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const headers = { ...asJson, 'authorization': `Bearer ${TOKEN}`, 'content-length': 100_000_000 }
  const large = requestHttp(url + path, { method: 'POST', headers })
    .on('response', resolve)
    .on('error', reject)
  large.flushHeaders()
  const tooLarge = await promise
  t.equal(tooLarge.headers['content-type'], PROBLEM)
  t.match(await json(tooLarge), { status: 413, code: 'body-too-large', detail: /\d+ bytes/ })
  large.destroy()

  await post(path, DEPLOY)
  const body = { ...INVOKE, bodyBase64: Buffer.alloc(100_001).toString('base64') }
  t.match(await problemOf(await post('/v1/functions/f/invocations', body)), { status: 413, detail: /100000 bytes/ })
  t.strictSame(faults, [])
})

t.test('the parameters of logs are read, and a wrong one is refused by name', async (t) => {
  const { send, post, logs } = await startControlPlane(t)
  await post('/v1/functions/f/revisions', DEPLOY)
  for (const msg of ['a', 'b', 'c']) logs.append({ ...LINE, msg })
  const read = async (query: string): Promise<string[]> => {
    const lines = (await (await send(`/v1/logs${query}`)).text()).split('\n').slice(0, -1)
    return lines.map((line) => (JSON.parse(line) as LogLine).msg)
  }
  t.strictSame(await read(''), ['a', 'b', 'c'])
  t.strictSame(await read('?limit=2&function=f&follow=false'), ['b', 'c'])
  t.strictSame(await read('?limit=0'), [])
  const cases: Array<[query: string, detail: RegExp]> = [
    ['limit=-1', /limit must be a whole number from 0 to 10000, not "-1"/],
    ['limit=10001', /limit/],
    ['limit=', /limit/],
    ['limit=1.5', /limit/],
    ['limit=1&limit=2', /limit may be given only once/],
    ['follow=1', /follow must be true or false, not "1"/],
    ['lines=5', /no parameter "lines"/],
    ['constructor=5', /no parameter "constructor"/],
  ]
  for (const [query, detail] of cases) {
    const problem = await problemOf(await send(`/v1/logs?${query}`))
    t.match(problem, { status: 400, code: 'bad-request', detail, contentType: PROBLEM }, query)
  }
  t.match(await problemOf(await send('/v1/logs?function=g')), { status: 404, code: 'not-found' })
})

t.test('who follows a log gets the past and what comes, and is forgotten on leaving', async (t) => {
  const { send, logs } = await startControlPlane(t)
  logs.append({ ...LINE, msg: 'past' })
  const controller = new AbortController()
  const response = await send('/v1/logs?follow=true', { signal: controller.signal })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  t.match(await reader.read(), { value: /"past"/ })
  t.equal(logs.followers, 1)
  logs.append({ ...LINE, msg: 'now' })
  t.match(await reader.read(), { value: /"now"/ })
  controller.abort()
  await t.rejects(reader.read())
  while (logs.followers > 0) await new Promise(setImmediate)
})

t.test('who follows a log in which nothing stands yet has the head of the answer at once', async (t) => {
  const { send, logs } = await startControlPlane(t)
  const response = await send('/v1/logs?follow=true')
  t.equal(response.status, 200)
  logs.append({ ...LINE, msg: 'first' })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  t.match(await reader.read(), { value: /"first"/ })
  await reader.cancel()
})

t.test('who asks for nothing but the head of a log that is followed does not follow it', async (t) => {
  const { send, logs } = await startControlPlane(t)
  for (let asked = 0; asked < 3; asked++) t.equal((await send('/v1/logs?follow=true', { method: 'HEAD' })).status, 200)
  while (logs.followers > 0) await new Promise(setImmediate)
  logs.append({ ...LINE, msg: 'now' })
  t.equal(logs.followers, 0)
})

t.test('a log that cannot be read is told, and nobody goes on following it', async (t) => {
  const { dataDir, send, post, logs } = await startControlPlane(t)
  await post('/v1/functions/f/revisions', DEPLOY)
  logs.append(LINE)
  await logs.tail({ functionName: 'f', limit: 1 })
  mkdirSync(join(dataDir, 'logs', 'f.1.ndjson'))
  const response = await send('/v1/logs?function=f&follow=true')
  t.match(await problemOf(response), { status: 500, code: 'data-unusable', contentType: PROBLEM, detail: /^f\.1\.ndjson in / })
  t.equal(logs.followers, 0)
})

t.test('an invocation is canceled when its client leaves, and not when it is answered', async (t) => {
  const started = Promise.withResolvers<Call>()
  const canceled = Promise.withResolvers<void>()
  const answered: Call[] = []
  const { post } = await startControlPlane(t, (call) => {
    if (call.functionName === 'quick') {
      answered.push(call)
      return call.end(new CarpoolError('not-found', 'There is none.'))
    }
    const cancel = (): void => {
      call.record = { id: '1' } as InvocationRecord
      call.result = { outcome: 'canceled', start: 'warm', usage: NO_USAGE, detail: 'The client left.' }
      call.end(undefined)
      canceled.resolve()
    }
    call.holder = { cancel }
    started.resolve(call)
  })
  for (const name of ['quick', 'slow']) await post(`/v1/functions/${name}/revisions`, DEPLOY)
  t.equal((await post('/v1/functions/quick/invocations', INVOKE)).status, 404)
  const controller = new AbortController()
  const call = post('/v1/functions/slow/invocations', INVOKE, { signal: controller.signal })
  const slow = await started.promise
  t.notOk(slow.isCanceled)
  controller.abort()
  await t.rejects(call)
  await canceled.promise
  t.ok(slow.isCanceled)
  t.notOk(answered[0]?.isCanceled)
})

t.test('a server is ready in one state alone, and says why not in the others', async (t) => {
  const { url, state } = await startControlPlane(t)
  const ready = await fetch(`${url}/readyz`)
  t.equal(ready.status, 200)
  t.notOk(ready.headers.has('retry-after'))
  // Whoever asks without a token is not told of files of the machine.
  const sandbox = { on: 12, total: 13, off: [{ layers: ['user'], remedy: 'Run the server as root.' }] }
  t.strictSame(await ready.json(), { status: 'ready', reasons: [], sandbox })
  for (const one of ['starting', 'saturated', 'draining', 'not-ready'] as const) {
    state.status = { ...state.status, state: one, reasons: ['Because.'] }
    const response = await fetch(`${url}/readyz`)
    t.equal(response.status, 503, one)
    t.match(response.headers.get('retry-after'), one === 'saturated' ? /^[12]$/ : /^1$/)
    t.strictSame(await response.json(), { status: one, reasons: ['Because.'], sandbox })
    t.equal((await fetch(`${url}/healthz`)).status, 200, 'it is alive all the same')
  }
})

t.test('the status is for those who have the token', async (t) => {
  const { url, send, state } = await startControlPlane(t)
  t.equal((await fetch(`${url}/v1/status`)).status, 401)
  t.strictSame(await (await send('/v1/status')).json(), state.status)
})

t.test('of the decisions the newest 20 are told', async (t) => {
  const { send, state } = await startControlPlane(t)
  const decision = { action: 'grow', reason: 'saturated', hostsBefore: 1, hostsAfter: 2, figures: {} }
  const decisions = Array.from({ length: 30 }, (_, index): ScalingDecisionInfo => ({ at: String(index), ...decision }))
  state.status = { ...state.status, decisions }
  t.strictSame(((await (await send('/v1/status')).json()) as typeof state.status).decisions, decisions.slice(0, 20))
})

t.test('a refusal that may pass says when to come back', async (t) => {
  const refusals = [
    new CarpoolError('too-many-requests', '5 of 5.'),
    new CarpoolError('saturated', 'Full.'),
    new CarpoolError('not-found', 'No.'),
  ]
  const { post } = await startControlPlane(t, (call) => call.end(refusals.shift()))
  await post('/v1/functions/f/revisions', { code: 'code', sourceMap: '{}' })
  const invoke = () => post('/v1/functions/f/invocations', { method: 'GET', path: '/', headers: [], bodyBase64: '' })
  const limited = await invoke()
  t.equal(limited.headers.get('retry-after'), '1')
  t.match(await problemOf(limited), { status: 429, code: 'too-many-requests' })
  const saturated = await invoke()
  t.match(saturated.headers.get('retry-after'), /^[12]$/)
  t.match(await problemOf(saturated), { status: 503, code: 'saturated' })
  t.notOk((await invoke()).headers.has('retry-after'))
})

interface Described {
  readonly operationId: string
  readonly summary: string
  readonly security: readonly object[]
  readonly parameters?: ReadonlyArray<{ readonly name: string; readonly in: string }>
  readonly requestBody?: object
  readonly responses: Readonly<
    Record<string, { readonly description: string; readonly content?: Record<string, { schema: Schema }> }>
  >
}

interface Schema {
  readonly properties: { readonly code?: { readonly enum: readonly ErrorCode[] } }
}

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

/** Each operation of a document with its method and path. */
function operationsOf({ paths }: Document): Array<readonly [request: string, operation: Described]> {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  )
}

t.test('the document describes each operation with its name, its security and its errors', async (t) => {
  const { url } = await startControlPlane(t)
  const response = await fetch(`${url}/v1/openapi.json`)
  t.match(response.headers.get('content-type'), /^application\/json/)
  const document = (await response.json()) as Document
  t.match(document, {
    openapi: /^3\.1\./,
    info: { title: String, version: '0.0.0' },
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
  })
  const operations = operationsOf(document)
  t.equal(new Set(operations.map(([, { operationId }]) => operationId)).size, operations.length)
  const open = operations.filter(([, { security }]) => security.length === 0).map(([request]) => request)
  t.strictSame(open.toSorted(), ['GET /healthz', 'GET /metrics', 'GET /readyz', 'GET /v1/openapi.json'])
  for (const [request, { summary, responses, requestBody, security, parameters = [] }] of operations) {
    t.match(summary, /\.$/, request)
    const names = [...request.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    t.strictSame(
      parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name),
      names,
    )
    t.equal(requestBody !== undefined, '413' in responses, `${request} has a body and its limit, or neither`)
    if (security.length > 0) t.ok('401' in responses && '403' in responses, request)
    for (const [status, { description, content }] of Object.entries(responses)) {
      t.not(description, '')
      const codes = content?.['application/problem+json']?.schema.properties.code?.enum
      t.equal(
        codes !== undefined,
        Number(status) >= 400 && !(request === 'GET /readyz' && status === '503'),
        `${request} ${status}`,
      )
      for (const code of codes ?? []) t.equal(ERRORS[code].status, Number(status), `${request} ${code}`)
    }
  }
})

t.test('the docs list the same requests', async (t) => {
  const { url } = await startControlPlane(t)
  const document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as Document
  const text = readFileSync(new URL('../../../docs/control-plane.md', import.meta.url), 'utf8')
  const listed = (text.split('\n## Requests\n')[1] ?? '').split('\n').filter((line) => line.startsWith('| `'))
  const described = operationsOf(document).map(([request, { summary }]) => {
    const [, what = summary, scope] = /^(.*) Scope: (\w+)\.$/.exec(summary) ?? []
    return `| \`${request}\` |${scope === undefined ? '' : ` \`${scope}\``} | ${what} |`
  })
  t.strictSame(listed.toSorted(), described.toSorted())
})
