/** The SDK's `invoke` promises authors of Lambda functions that a unit test sees what the host does: here both are compared. */
import { request as requestHttp, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Problem } from '@carpool/core'
import { invoke, type LambdaHandler } from '@carpool/sdk'
import t, { type Test } from 'tap'
import { startServer } from '../support/server.ts'

interface Sent {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Uint8Array<ArrayBuffer>
}

const REQUESTS: Readonly<Record<string, Sent>> = {
  'a path alone': { path: '/' },
  'an encoded path': { path: '/a%20b/%C3%A9//c%2Fd;e=1/' },
  'a path of two slashes': { path: '//a/b' },
  'a query': { path: '/q?x=1&y=2&x=3&z' },
  'a query with all kinds of escapes': { path: '/q?a+b=c+d&%C3%A9=%ff&p=%&q=%zz&r=%EF%BB%BFb&=v&&s=a=b&t=%2C,' },
  'a query with names of object members': { path: '/q?__proto__=1&constructor=2&__proto__=3' },
  'an empty query': { path: '/q?' },
  'a query of an ampersand': { path: '/q?&' },
  'cookies': { path: '/', headers: { cookie: 'a=1; b=2;c=3; d' } },
  'an empty cookie': { path: '/', headers: { cookie: '' } },
  'headers': { path: '/', headers: { 'X-One': '1', 'x-many': ['a', 'b, c'], 'x-latin': 'é', 'x-empty': '', 'user-agent': 'me' } },
  'a text': { method: 'POST', path: '/', headers: { 'content-type': 'text/plain' }, body: 'é\0\u{1f600}\r\n' },
  'a text with a byte order mark': { method: 'PUT', path: '/', body: '\ufeffa' },
  'bytes': { method: 'PATCH', path: '/', body: new Uint8Array([0xff, 0, 0xc3]) },
  'an empty body': { method: 'POST', path: '/', body: '' },
  'DELETE': { method: 'DELETE', path: '/x' },
  'OPTIONS': { method: 'OPTIONS', path: '/x' },
}

/** What a handler gives, as source text, since it has to get into the isolate too. */
const RESULTS: readonly string[] = [
  `'text'`,
  `''`,
  `undefined`,
  `null`,
  `0`,
  `NaN`,
  `false`,
  `[1, { a: undefined }]`,
  `{ a: 'é\\ud800' }`,
  `{ statusCode: undefined, a: 1 }`,
  `new Date(0)`,
  `Object.assign(() => {}, { then: (resolve) => resolve('of a function') })`,
  `({ then: (resolve, reject) => reject(new Error('no')) })`,
  `() => {}`,
  `Symbol('a')`,
  `1n`,
  `{ toJSON() {} }`,
  `(() => { const loop = {}; loop.loop = loop; return loop })()`,
  `{ statusCode: 200 }`,
  `{ statusCode: 200, body: '' }`,
  `{ statusCode: 200, body: null }`,
  `{ statusCode: '201', body: 'created' }`,
  `{ statusCode: ' 202 ', body: 'é\\u{1f600}\\ud800' }`,
  `{ statusCode: 204, body: 'ignored', headers: { a: '1' } }`,
  `{ statusCode: 205 }`,
  `{ statusCode: 304, headers: { etag: '"x"' } }`,
  `{ statusCode: 404, body: '{}' }`,
  `{ statusCode: 599, body: 'x' }`,
  ...['99', '101', '600', '200.5', `'abc'`, `null`, `''`, `{}`, `200n`, `true`].map((code) => `{ statusCode: ${code} }`),
  ...['{ a: 1 }', '1', 'true', 'new Uint8Array(1)'].map((body) => `{ statusCode: 200, body: ${body} }`),
  ...['/wA=', '/wA', '/w A =\\n', 'YR==', 'YQ=', 'a', '!!!!', '_-8=', 'YQ==YQ==', '====', '', 'YWI=c', 'é'].map(
    (body) => `{ statusCode: 200, body: '${body}', isBase64Encoded: true }`,
  ),
  `{ statusCode: 204, body: '!', isBase64Encoded: true }`,
  `{ statusCode: 200, body: '!', isBase64Encoded: 'true' }`,
  `{ statusCode: 200, isBase64Encoded: true }`,
  `{ statusCode: 200, body: 'x', headers: { 'Content-Type': 'text/html', 'X-A': 1, 'x-a': true, 'x-b': null, 'x-c': undefined } }`,
  `{ statusCode: 200, body: 'x', headers: { 'x-a': 'single', 'x-b': 'b' }, multiValueHeaders: { 'X-A': ['m', 'n', 3], 'x-c': 'c' } }`,
  `{ statusCode: 200, body: 'x', headers: { 'x-a': 'single' }, multiValueHeaders: { 'x-a': [] } }`,
  `{ statusCode: 200, body: 'x', headers: null, multiValueHeaders: null, cookies: null }`,
  `{ statusCode: 200, body: 'x', cookies: ['a=1; Path=/', 'b=2'], headers: { 'Set-Cookie': 'c=3' } }`,
  `{ statusCode: 200, body: 'x', cookies: 'a=1' }`,
  `{ statusCode: 200, body: 'x', headers: { 'x-a': '  é\\t', 'x-b': ['c', 'd'], 'content-type': '' } }`,
  `{ statusCode: 200, body: 'x', headers: { 'connection': 'close', 'Content-Length': '99', 'x-carpool-error': 'mine', 'te': 'a' } }`,
  `{ statusCode: 200, headers: { 'a b': '1' } }`,
  `{ statusCode: 200, headers: { '': '1' } }`,
  `{ statusCode: 200, headers: { a: 'b\\r\\nc: d' } }`,
  `{ statusCode: 200, headers: { a: '\\u0100' } }`,
  `{ statusCode: 200, headers: { a: Symbol('a') } }`,
  `{ statusCode: 200, cookies: ['a\\nb'] }`,
  `{ statusCode: 200, cookies: Array.from({ length: 100 }, (_, index) => 'a=' + index) }`,
  `{ statusCode: 200, cookies: Array.from({ length: 101 }, (_, index) => 'a=' + index) }`,
  `{ statusCode: 200, headers: { a: 'x'.repeat(64 * 1024) } }`,
]

const FORMS: Readonly<Record<string, string>> = {
  'a promise': `async () => 'promised'`,
  'a callback': `(event, context, callback) => { setTimeout(() => callback(null, 'called'), 0) }`,
  'a callback with a response': `(event, context, callback) => callback(undefined, { statusCode: 201, body: 'called' })`,
  'a callback before the return, of two parameters': `(event, ...rest) => { rest[1](null, 'called'); return 'returned' }`,
  'a callback with a promise': `(event, context, callback) => callback(null, Promise.resolve('x'))`,
  'a callback with an error': `(event, context, callback) => callback(new Error('no'))`,
  'a callback and a throw': `(event, context, callback) => { callback(null, 'called'); throw new Error('no') }`,
  'three parameters and a promise': `async (event, context, callback) => 'promised'`,
  'a throw': `() => { throw new Error('no') }`,
  'a rejection with nothing': `async () => { throw undefined }`,
}

const RESULTS_CODE = `
  const results = [${RESULTS.map((result) => `() => (${result})`).join(',\n')}]
  export const handler = (event) => results[Number(event.queryStringParameters.n)]()`
const ECHO_CODE = `export const handler = (event, context) => ({ statusCode: 200, body: JSON.stringify({ event, context }) })`

/** What the way over HTTP adds. */
const REQUEST_HEADERS = ['host', 'content-length', 'x-forwarded-prefix']
const RESPONSE_HEADERS = [
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'server-timing',
  'transfer-encoding',
  'x-carpool-invocation',
]

const server = await startServer(t)

t.test('requests become the same events, with the same context', async (t) => {
  await server.deploy('echo', ECHO_CODE)
  const module = await load(ECHO_CODE)
  for (const [title, sent] of Object.entries(REQUESTS)) {
    const ofSdk = await (await invoke(module, toRequest(sent), { functionName: 'echo' })).json()
    t.strictSame(comparable(JSON.parse(await send(`${server.url}/echo`, sent)) as Echo), comparable(ofSdk as Echo), title)
  }
  const ofPath = await (await invoke(module, '//a/b', { functionName: 'echo' })).json()
  t.equal((ofPath as Echo).event['rawPath'], '//a/b', 'a path given as text')
})

t.test('results become the same responses', async (t) => {
  await server.deploy('results', RESULTS_CODE)
  const module = await load(RESULTS_CODE)
  for (const [n, result] of RESULTS.entries()) {
    await compareAnswers(t, result, await server.get(`/results/?n=${n}`), () => invoke(module, `/?n=${n}`))
  }
})

t.test('handlers answer in the same ways', async (t) => {
  for (const [index, [title, form]] of Object.entries(FORMS).entries()) {
    const code = `export const handler = ${form}`
    await server.deploy(`form-${index}`, code)
    const module = await load(code)
    await compareAnswers(t, title, await server.get(`/form-${index}/`), () => invoke(module, '/'))
  }
})

interface Echo {
  readonly event: Record<string, unknown> & { headers: Record<string, string>; requestContext: Record<string, unknown> }
  readonly context: Record<string, unknown>
}

function comparable({ event, context }: Echo): object {
  for (const name of REQUEST_HEADERS) delete event.headers[name]
  for (const name of ['requestId', 'time', 'timeEpoch', 'domainName', 'domainPrefix']) {
    event.requestContext[name] = typeof event.requestContext[name]
  }
  for (const name of ['functionVersion', 'awsRequestId', 'logStreamName']) context[name] = typeof context[name]
  return { event, context }
}

async function load(code: string): Promise<{ handler: LambdaHandler }> {
  return (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { handler: LambdaHandler }
}

function toRequest({ method = 'GET', path, headers = {}, body }: Sent): Request {
  const list = new Headers()
  for (const [name, values] of Object.entries(headers)) for (const value of [values].flat()) list.append(name, value)
  // As bytes, since a text would bring a content type with it.
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  return new Request(`http://localhost${path}`, { method, headers: list, ...(bytes && { body: bytes }) })
}

/** Not with `fetch`, which adds headers of its own. */
async function send(url: string, { method = 'GET', path, headers = {}, body }: Sent): Promise<string> {
  const { hostname, port, pathname } = new URL(url)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  requestHttp({ hostname, port, path: pathname + path, method, headers: { ...headers } })
    .on('response', resolve)
    .on('error', reject)
    .end(body)
  return text(await promise)
}

/** The SDK throws where the host answers with a problem. */
async function compareAnswers(t: Test, title: string, ofHost: Response, callSdk: () => Promise<Response>): Promise<void> {
  const ofSdk = await callSdk().catch((cause: unknown) => ({ thrown: cause }))
  if (ofSdk instanceof Response) {
    t.strictSame(await answerOf(ofHost), await answerOf(ofSdk), title)
    return
  }
  const { code, detail } = (await ofHost.json()) as Partial<Problem>
  t.match(code, /^(exception|invalid-response)$/, title)
  // What is wrong with a header, the Headers class of Node.js says in words of its own.
  if (code === 'exception' || /header|Symbol/.test(detail ?? '')) return
  t.equal((ofSdk.thrown as Error).message, detail, title)
}

async function answerOf(response: Response): Promise<object> {
  const headers = [...response.headers].filter(([name]) => !RESPONSE_HEADERS.includes(name))
  const body = Buffer.from(await response.arrayBuffer()).toString('latin1')
  return { status: response.status, headers, cookies: response.headers.getSetCookie(), body }
}
