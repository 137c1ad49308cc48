/** Whatever a function answers, its client gets one whole response, and the connection stays in sync. */
import t from 'tap'
import { startServer } from '../support/server.ts'
import { connectRaw } from './raw-client.ts'

/** Answers with what the last segment of the path names. */
const FUNCTION = `
  const text = (body, init) => new Response(body, init)
  const answers = {
    'length': () => text('ten bytes.', { headers: { 'content-length': '5' } }),
    'transfer-encoding': () => text('plain', { headers: { 'transfer-encoding': 'chunked' } }),
    'connection': () => text('plain', { headers: { 'connection': 'close, x-mine', 'x-mine': 'yes', 'upgrade': 'x', 'keep-alive': 'timeout=1' } }),
    'server': () => text('plain', { headers: { date: 'never', server: 'forged', 'x-carpool-error': 'forged', 'x-carpool-invocation': 'forged' } }),
    'odd-names': () => text('plain', { headers: [['__proto__', 'a'], ['constructor', 'b'], ['set-cookie', 'c=1'], ['set-cookie', 'd=2']] }),
    'no-content': () => text(null, { status: 204, headers: { 'content-length': '7' } }),
    'not-modified': () => text(null, { status: 304, headers: { 'content-length': '7' } }),
    'head': () => text('the body', {}),
    'hundred': () => text('plain', { headers: Array.from({ length: 99 }, (_, index) => ['x-' + index, 'y']) }),
    'too-many': () => text('plain', { headers: Array.from({ length: 101 }, (_, index) => ['x-' + index, 'y']) }),
    'too-long': () => text('plain', { headers: { 'x-long': 'y'.repeat(65536) } }),
    'million': () => text('plain', { headers: { 'x-long': 'y'.repeat(1000000) } }),
    'split': () => text('plain', { headers: { 'x-a': 'b\\r\\ncontent-length: 0\\r\\n\\r\\nHTTP/1.1 200 OK' } }),
    'empty': () => text(null, { status: 299 }),
  }
  export default { fetch: (request) => answers[new URL(request.url).pathname.slice(1)]() }`

/** The same for handlers that return plain objects. */
const LAMBDA = `
  const answers = {
    'informational': () => ({ statusCode: 101 }),
    'continue': () => ({ statusCode: 100 }),
    'thousand': () => ({ statusCode: 1000 }),
    'not-a-number': () => ({ statusCode: NaN }),
    'line': () => ({ statusCode: '200 OK\\r\\nx: y' }),
    'header': () => ({ statusCode: 200, headers: { 'x-a': 'b\\r\\nx-b: c' } }),
    'name': () => ({ statusCode: 200, headers: { 'x-a: b\\r\\nx-b': 'c' } }),
    'wide': () => ({ statusCode: 200, headers: { 'x-a': '\\u560d\\u560a' } }),
    'nul': () => ({ statusCode: 200, headers: { 'x-a': 'b\\0' } }),
    'reset': () => ({ statusCode: 205, body: 'nothing to see' }),
    'length': () => ({ statusCode: 200, headers: { 'Content-Length': '0' }, body: 'seven!!' }),
    'cookies': () => ({ statusCode: 200, cookies: ['a=1', 'b=2\\r\\nx: y'], body: '' }),
  }
  export const handler = async (event) => answers[event.rawPath.slice(1)]()`

const OF_THE_SERVER = ['date', 'server', 'connection', 'keep-alive', 'upgrade', 'transfer-encoding']

const server = await startServer(t)

t.test('responses', async (t) => {
  await server.deploy('f', FUNCTION)
  await server.deploy('l', LAMBDA)
  const client = await connectRaw(t, server.url)
  const ask = async (path: string, method = 'GET') => {
    client.send(`${method} ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
    const answer = await client.answer(method)
    if (answer === undefined) throw new Error(`There is no answer to ${path}.`)
    return { ...answer, named: new Map(answer.headers) }
  }

  await t.test('what belongs to the connection is not the function’s to say', async (t) => {
    t.match(await ask('/f/length'), { status: 200, body: 'ten bytes.' })
    t.match(await ask('/f/transfer-encoding'), { status: 200, body: 'plain' })
    for (const path of ['/f/connection', '/f/server']) {
      const { status, body, headers, named } = await ask(path)
      t.match({ status, body }, { status: 200, body: 'plain' })
      t.match(named.get('x-carpool-invocation'), /^[\da-f-]{36}$/)
      t.notOk(named.has('x-carpool-error'))
      t.notMatch(JSON.stringify(headers), /forged|never/)
      const ours = headers.filter(([name]) => OF_THE_SERVER.includes(name)).map(([name]) => name)
      t.strictSame(ours.toSorted(), ['connection', 'date', 'keep-alive'], 'Node.js says so itself')
    }
  })
  await t.test('names that are special elsewhere are names', async (t) => {
    const { headers } = await ask('/f/odd-names')
    const odd = headers.filter(([name]) => /^(?:__proto__|constructor|set-cookie)$/.test(name))
    t.strictSame(odd, [
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['set-cookie', 'c=1'],
      ['set-cookie', 'd=2'],
    ])
  })
  await t.test('responses without a body have none', async (t) => {
    t.match(await ask('/f/no-content'), { status: 204, body: '' })
    t.match(await ask('/f/not-modified'), { status: 304, body: '' })
    const { named } = await ask('/f/head', 'HEAD')
    t.equal(named.get('content-length'), '8')
    t.match(await ask('/l/reset'), { status: 205, body: '' })
    t.match(await ask('/f/empty'), { status: 299, body: '' })
  })
  await t.test('headers have limits', async (t) => {
    t.match(await ask('/f/hundred'), { status: 200, body: 'plain' })
    for (const [path, limit] of Object.entries({
      'too-many': /limit is 100/,
      'too-long': /limit is 65536/,
      'million': /limit is 65536/,
    })) {
      const { status, body } = await ask(`/f/${path}`)
      t.equal(status, 502, path)
      t.match(JSON.parse(body), { code: 'invalid-response', detail: limit }, path)
    }
  })
  await t.test('what would begin another response is none', async (t) => {
    t.match(await ask('/f/split'), { status: 500 }, 'it fails in the function')
    const invalid = ['informational', 'continue', 'thousand', 'not-a-number', 'line', 'header', 'name', 'wide', 'nul', 'cookies']
    for (const path of invalid) {
      const { status, body } = await ask(`/l/${path}`)
      t.match({ status, ...JSON.parse(body) }, { status: 502, code: 'invalid-response' }, path)
    }
    t.match(await ask('/l/length'), { status: 200, body: 'seven!!' })
  })
  t.equal(client.interim, 0, 'there was no response but those')
})

t.test('what only Carpool may say does not come from clients', async (t) => {
  await server.deploy('seen', `export default { fetch: (request) => Response.json([...request.headers]) }`)
  const client = await connectRaw(t, server.url)
  const forged = [
    'x-carpool-invocation: a',
    'X-Carpool-Hops: 1.b',
    'x-CARPOOL-x: c',
    'x-forwarded-prefix: /d',
    'connection: keep-alive, x',
    'te: trailers',
  ]
  const kept = ['x-forwarded-for: 192.0.2.1', '__proto__: e', 'constructor: f', 'x_carpool_hops: g']
  client.send(`GET /seen/ HTTP/1.1\r\nHost: h\r\n${[...forged, ...kept].join('\r\n')}\r\n\r\n`)
  const answer = await client.answer()
  const seen = Object.fromEntries(JSON.parse(answer?.body ?? '') as Array<[string, string]>)
  t.match(seen, { 'host': 'h', 'x-forwarded-prefix': '/seen', 'x-forwarded-for': '192.0.2.1', 'x_carpool_hops': 'g' })
  for (const name of ['x-carpool-invocation', 'x-carpool-hops', 'x-carpool-x', 'connection', 'te'])
    t.notOk(Object.hasOwn(seen, name), name)
})
