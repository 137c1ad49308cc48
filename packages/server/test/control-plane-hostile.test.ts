import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { checkJsonShape } from '../src/control-plane/json-body.ts'
import { problemOf, startControlPlane, TOKEN } from './support/control-plane.ts'

const DEPLOY = { code: 'code', sourceMap: '{}' }
const DEPLOY_PATH = '/v1/functions/f/revisions'
const AS_JSON = { 'content-type': 'application/json' }

/** What is answered to bytes on a connection. */
async function exchange(url: string, head: readonly string[], body: Buffer | string = ''): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write([...head, `host: ${hostname}`, `authorization: Bearer ${TOKEN}`, 'connection: close', '', ''].join('\r\n'))
  socket.write(body)
  return text(socket)
}

t.test('no name is a function that is none, and no name breaks anything', async (t) => {
  const { post, send, registry, faults, url } = await startControlPlane(t)
  const paths = ['.', '..', '%2e%2e', '...', '%00', 'a%00', '%2f', 'a%2fb', '..%2f..%2fetc']
  const properties = ['__proto__', 'toString', 'hasOwnProperty']
  const lookalikes = ['F', 'Foo', 'ｆ', 'а', 'ﬁ', 'é', '🚗', 'a\u200bb', '-a', 'a-', 'a_b', 'a b', 'a.b']
  const names = [...paths, ...properties, ...lookalikes, 'x'.repeat(64), 'x'.repeat(10_000)]
  const requests: Array<[method: string, pathOf: (name: string) => string, body?: object]> = [
    ['GET', (name) => `/v1/functions/${name}`],
    ['DELETE', (name) => `/v1/functions/${name}`],
    ['POST', (name) => `/v1/functions/${name}/revisions`, DEPLOY],
    ['PUT', (name) => `/v1/functions/${name}/secrets/A`, { value: 'v' }],
  ]
  for (const name of names) {
    for (const [method, pathOf, body] of requests) {
      const init = { method, ...(body && { body: JSON.stringify(body), headers: AS_JSON }) }
      const { status } = await send(pathOf(name), init)
      t.ok(status >= 400 && status < 500, `${method} ${pathOf(name).slice(0, 80)}: ${status}`)
    }
    // As it is, without a client that puts the path in order.
    const path = `/v1/functions/${encodeURIComponent(name)}/revisions`
    const answer = await exchange(url, [`POST ${path} HTTP/1.1`, 'content-type: application/json', 'content-length: 2'], '{}')
    t.match(answer, /^HTTP\/1\.1 4\d\d /, name.slice(0, 80))
  }
  const sound = ['con', 'constructor', 'nul']
  for (const name of sound) t.equal((await post(`/v1/functions/${name}/revisions`, DEPLOY)).status, 201)
  t.strictSame(
    registry.list().map(({ functionName }) => functionName),
    sound,
  )
  t.strictSame(faults, [])
})

t.test('JSON that is deep, has millions of values or keys of prototypes is refused before it is made', async (t) => {
  const { send, deploys, faults } = await startControlPlane(t)
  const cases: Array<[body: string | Buffer<ArrayBuffer>, detail: RegExp]> = [
    ['['.repeat(500_000), /nested more than 16 levels/],
    ['{"a":'.repeat(100_000), /nested more than 16 levels/],
    [`[${'[],'.repeat(300_000)}[]]`, /more than 20000 values/],
    [
      `{"code":"","sourceMap":"","env":{${Array.from({ length: 30_000 }, (_, i) => `"A${i}":""`).join(',')}}}`,
      /more than 20000 values/,
    ],
    ['{"__proto__":{"code":""}}', /not valid JSON/],
    ['{"code":"","sourceMap":"","\\u005f_proto__":{}}', /not valid JSON/],
    ['{"constructor":{"prototype":{"x":1}}}', /not valid JSON/],
    ['{"code":"","sourceMap":"","constructor":1}', /may not have the key "constructor"/],
    [Buffer.from([0x22, 0xff, 0xfe, 0x22]), /not valid UTF-8/],
    ['\u0000', /not valid JSON/],
    ['{"code":"","code":""', /not valid JSON/],
    ['"text"', /must be object/],
    ['1e999', /must be object/],
  ]
  for (const [body, detail] of cases) {
    const problem = await problemOf(await send(DEPLOY_PATH, { method: 'POST', body, headers: AS_JSON }))
    t.match(problem, { status: 400, code: 'bad-request', detail }, body.toString().slice(0, 60))
  }
  t.equal(Object.getOwnPropertyDescriptor(Object.prototype, 'x'), undefined)
  t.strictSame(deploys, [])
  t.strictSame(faults, [])
})

t.test('the look at JSON counts what stands outside of texts alone', async (t) => {
  const pass = (json: string): unknown => t.doesNotThrow(() => checkJsonShape(Buffer.from(json)), json.slice(0, 60))
  pass(`{"code":${JSON.stringify(`${'[{,'.repeat(100_000)}\\"\\\\`)}}`)
  pass(`["\\\\",${'"a\\"[[[[[[[[[[[[[[[[[[[[",'.repeat(100)}1]`)
  pass(`"${'\\\\'.repeat(100_000)}"`)
  pass('"no end')
  pass(']]]]')
  pass(`${'['.repeat(16)}${']'.repeat(16)}`)
  t.throws(() => checkJsonShape(Buffer.from('['.repeat(17))), { code: 'bad-request' })
  t.throws(() => checkJsonShape(Buffer.from(`["\\\\"${','.repeat(20_000)}`)), { code: 'bad-request' })
})

t.test('a body that is far too large is refused as soon as that is known', async (t) => {
  const { url } = await startControlPlane(t)
  const announced = await exchange(url, [
    `POST ${DEPLOY_PATH} HTTP/1.1`,
    'content-type: application/json',
    'content-length: 1000000000',
  ])
  t.match(announced, /^HTTP\/1\.1 413 [^]*"code":"body-too-large"/)
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  const answer = text(socket).catch(() => '')
  socket.write(
    `POST ${DEPLOY_PATH} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${TOKEN}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  )
  const chunk = Buffer.concat([Buffer.from('10000\r\n'), Buffer.alloc(65_536, 0x20), Buffer.from('\r\n')])
  let sentBytes = 0
  while (!socket.destroyed && socket.writable && sentBytes < 50_000_000) {
    sentBytes += chunk.length
    if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
  }
  socket.end()
  await answer
  t.ok(sentBytes < 50_000_000, `it was cut off after ${sentBytes} bytes`)
})

t.test('other types of content are refused', async (t) => {
  const { send } = await startControlPlane(t)
  const types = [
    'text/plain',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/x-www-form-urlencoded',
    'application/json5',
    'x',
    '',
  ]
  for (const type of types) {
    const problem = await problemOf(
      await send(DEPLOY_PATH, { method: 'POST', body: JSON.stringify(DEPLOY), headers: { 'content-type': type } }),
    )
    t.match(problem, { status: 400, code: 'bad-request', detail: /application\/json/ }, type)
  }
  const withCharset = await send(DEPLOY_PATH, {
    method: 'POST',
    body: JSON.stringify(DEPLOY),
    headers: { 'content-type': 'application/json; charset=utf-8' },
  })
  t.equal(withCharset.status, 201)
})

t.test('what is no HTTP is refused on the connection', async (t) => {
  const { url } = await startControlPlane(t)
  t.match(
    await exchange(url, ['GET /v1/functions HTTP/1.1', 'transfer-encoding: chunked', 'content-length: 5']),
    /^HTTP\/1\.1 400 /,
  )
  t.match(await exchange(url, ['GET / v1 HTTP/1.1']), /^HTTP\/1\.1 400 /)
  t.match(await exchange(url, ['GET /v1/functions HTTP/1.1', `x: ${'y'.repeat(20_000)}`]), /^HTTP\/1\.1 431 /)
  t.match(await exchange(url, ['BREW /v1/functions HTTP/1.1']), /^HTTP\/1\.1 400 /)
  t.match(await exchange(url, ['TRACE /v1/functions HTTP/1.1']), /^HTTP\/1\.1 404 /)
})

t.test('nothing of this machine is in what is answered', async (t) => {
  const { send, url, dataDir } = await startControlPlane(t, undefined, {
    status: () => {
      throw new Error(`EACCES: ${process.cwd()}`)
    },
  })
  const answer = await (await send('/v1/status')).text()
  t.match(answer, /"code":"internal"/)
  for (const part of [dataDir, process.cwd(), 'EACCES', '.ts', 'node_modules']) t.notOk(answer.includes(part), part)
  t.ok(url)
})
