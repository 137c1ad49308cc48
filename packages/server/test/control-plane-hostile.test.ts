import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { CarpoolError, type Call, type RequestHead } from '@carpool/core'
import t from 'tap'
import { checkJsonShape } from '../src/json-shape.ts'
import { bodyBudget } from '../src/control-plane/request-bodies.ts'
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

t.test('large bodies are read as small ones are, and the server goes on meanwhile', async (t) => {
  const { deploys, send } = await startControlPlane(t)
  const parse = JSON.parse
  const parsedHere: number[] = []
  JSON.parse = (text: string, ...rest) => {
    parsedHere.push(text.length)
    return parse(text, ...rest)
  }
  t.teardown(() => {
    JSON.parse = parse
  })
  const large = 'x\u0000ü'.repeat(60_000)
  const post = (body: string | Buffer) => send(DEPLOY_PATH, { method: 'POST', body, headers: AS_JSON })
  const answer = await post(JSON.stringify({ code: 'code', sourceMap: large, env: { A: 'b' } }))
  t.equal(answer.status, 201)
  t.match(deploys, [{ code: 'code', env: { A: 'b' } }])
  t.ok(JSON.stringify(deploys[0]).includes(JSON.stringify(large)))
  const cases: ReadonlyArray<[string | Buffer, RegExp]> = [
    [JSON.stringify([large]).slice(0, -1), /not valid JSON/],
    [`{"__proto__":${JSON.stringify(large)}}`, /not valid JSON/],
    [`[${'[],'.repeat(200_000)}[]]`, /more than 20000 values/],
    [Buffer.alloc(600_000, 0xff), /not valid UTF-8/],
  ]
  for (const [body, detail] of cases) t.match(await problemOf(await post(body)), { status: 400, code: 'bad-request', detail })
  t.ok(parsedHere.every((length) => length < 100_000))
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

t.test('each operation takes bodies as large as it needs', async (t) => {
  const { as, post, send } = await startControlPlane(t)
  const large = 'x'.repeat(70_000)
  const tooLarge = { status: 413, code: 'body-too-large' }
  t.match(await problemOf(await post('/v1/tokens', { owner: large, scopes: ['read'] })), { ...tooLarge, detail: /65536 bytes/ })
  t.match(await problemOf(await post('/v1/functions/f/disable', { reason: large })), tooLarge)
  t.equal((await post(DEPLOY_PATH, { ...DEPLOY, code: large })).status, 201)
  t.equal((await as('acme', 'deploy').put('/v1/functions/g/secrets/A', { value: 'x'.repeat(65_536) })).status, 200)
  const call = { method: 'POST', path: '/', headers: [], bodyBase64: Buffer.alloc(150_000).toString('base64') }
  t.match(await problemOf(await post('/v1/functions/f/invocations', call)), { ...tooLarge, detail: /198870 bytes/ })
  t.match(await problemOf(await send('/v1/nothing', { method: 'POST', body: large, headers: AS_JSON })), tooLarge)
})

t.test('the bodies that one owner may have under way are limited; admins and others are let in', async (t) => {
  const begun = Promise.withResolvers<void>()
  const released = Promise.withResolvers<never>()
  const { as, post, url } = await startControlPlane(t, undefined, {
    deployer: {
      deploy: async (_name, _owner, { code }) => {
        if (code !== 'waits') throw new CarpoolError('load-failed', 'No.')
        begun.resolve()
        return released.promise
      },
    },
  })
  const acme = as('acme', 'deploy')
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  const head = (length: string): string =>
    `POST ${DEPLOY_PATH} HTTP/1.1\r\nhost: ${hostname}\r\nauthorization: Bearer ${acme.token}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`
  // Of one whose length is not known as much is reserved as there may be; it is held until it is answered.
  const body = JSON.stringify({ ...DEPLOY, code: 'waits' })
  socket.write(`${head('transfer-encoding: chunked')}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
  await begun.promise
  const large = { ...DEPLOY, code: 'x'.repeat(1_048_576) }
  const most = { ...DEPLOY, code: 'x'.repeat(1_048_000) }
  t.match(await problemOf(await acme.post(DEPLOY_PATH, large)), { code: 'body-too-large' })
  t.match(await problemOf(await acme.post(DEPLOY_PATH, most)), { code: 'load-failed' }, 'there is room for another')
  const second = connect(Number(port), hostname)
  second.on('error', () => {})
  second.write(head('content-length: 1048000'))
  let problem = await problemOf(await acme.post(DEPLOY_PATH, most))
  while (problem.code === 'load-failed') problem = await problemOf(await acme.post(DEPLOY_PATH, most))
  t.match(problem, { status: 503, code: 'saturated', detail: /requests of acme .* bodies of 2097152 bytes in all/ })
  t.match(await problemOf(await as('beta', 'deploy').post(DEPLOY_PATH, most)), { code: 'load-failed' })
  t.match(await problemOf(await post(DEPLOY_PATH, most)), { code: 'load-failed' })
  second.destroy()
  while (problem.code === 'saturated') problem = await problemOf(await acme.post(DEPLOY_PATH, most))
  t.match(problem, { code: 'load-failed' }, 'what a client that left had reserved is free again')
  socket.destroy()
  released.reject(new CarpoolError('load-failed', 'No.'))
})

t.test('of many requests at once one is handled, and those that Node.js would answer by itself are ours', async (t) => {
  const { url } = await startControlPlane(t)
  const { hostname, port } = new URL(url)
  for (const [path, head] of [
    ['/v1/openapi.json', `host: ${hostname}`],
    ['/%zz', `host: ${hostname}`],
    ['/v1/functions', `host: ${hostname}\r\nexpect: x`],
    ['/v1/functions', 'accept: x'],
  ]) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    let answers = ''
    socket.on('data', (chunk: Buffer) => (answers += chunk.toString()))
    socket.write(`GET ${path} HTTP/1.1\r\n${head}\r\n\r\n`.repeat(1300))
    await new Promise((resolve) => socket.once('close', resolve))
    t.ok((answers.match(/HTTP\/1\.1 /g)?.length ?? 0) <= 1, `${path}, ${head}`)
  }
  t.match(await exchange(url, ['GET /v1/functions HTTP/1.1', 'expect: x']), /^HTTP\/1\.1 200 /)
})

t.test('the requests of one owner leave connections to others and to admins', async (t) => {
  const calls: Call[] = []
  let heard = (): void => {}
  const { as, send } = await startControlPlane(t, (call) => {
    calls.push(call)
    call.holder = { cancel: () => call.end(new CarpoolError('no-host', 'No.')) }
    heard()
  })
  const [acme, beta] = [as('acme', 'deploy', 'invoke'), as('beta', 'read')]
  await acme.post(DEPLOY_PATH, DEPLOY)
  const invoke = { method: 'GET', path: '/', headers: [], bodyBase64: '' }
  const most = 64
  const answered = Array.from({ length: most }, () => acme.post('/v1/functions/f/invocations', invoke))
  while (calls.length < most) await new Promise<void>((resolve) => (heard = resolve))
  const problem = await problemOf(await acme.post('/v1/functions/f/invocations', invoke))
  t.match(problem, { status: 503, code: 'saturated', detail: /the requests of acme/ })
  t.equal((await beta.send('/v1/functions')).status, 200)
  t.equal((await send('/v1/functions')).status, 200)
  for (const call of calls) call.cancel()
  await Promise.all(answered)
  const again = acme.post('/v1/functions/f/invocations', invoke)
  while (calls.length === most) await new Promise<void>((resolve) => (heard = resolve))
  calls.at(-1)?.cancel()
  await again
})

t.test('connections without a token, as many as there may be, keep nobody out who has one', async (t) => {
  const { url, send, logs } = await startControlPlane(t)
  const { hostname, port } = new URL(url)
  const following = await send('/v1/logs?follow=true')
  const closed = Promise.withResolvers<void>()
  for (let count = 0; count < 256; count++) {
    const socket = connect(Number(port), hostname)
    t.teardown(() => socket.destroy())
    socket.on('error', () => {}).once('close', closed.resolve)
    socket.write('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await once(socket, 'data')
  }
  await closed.promise
  t.equal((await send('/v1/functions')).status, 200)
  t.equal(logs.followers, 1)
  await following.body?.cancel()
})

t.test('shares of bodies are taken and returned, and admins are never refused', async (t) => {
  const take = bodyBudget({ ownerBytes: 10, totalBytes: 15 })
  const returnFirst = take({ owner: 'a', bytes: 10, isAdmin: false })
  t.throws(() => take({ owner: 'a', bytes: 1, isAdmin: false }), { code: 'saturated', message: /of a .* 10 bytes/ })
  t.throws(() => take({ owner: 'b', bytes: 6, isAdmin: false }), { code: 'saturated', message: /15 bytes/ })
  take({ owner: 'b', bytes: 5, isAdmin: false })
  take({ owner: 'a', bytes: 100, isAdmin: true })()
  returnFirst()
  take({ owner: 'a', bytes: 10, isAdmin: false })
})

t.test('a call through the control plane is held to the rules of the data plane', async (t) => {
  const requests: RequestHead[] = []
  const { post } = await startControlPlane(t, (call) => {
    requests.push(call.head)
    call.end(new CarpoolError('no-host', 'No.'))
  })
  await post(DEPLOY_PATH, DEPLOY)
  const call = (changes: object): Promise<Response> =>
    post('/v1/functions/f/invocations', { method: 'GET', path: '/', headers: [], bodyBase64: '', ...changes })
  const refused: object[] = [
    ...['TRACE', 'CONNECT', 'BREW'].map((method) => ({ method })),
    ...['a/b', 'a b', '', 'user@host', 'a:b'].map((host) => ({ headers: [['host', host]] })),
    { headers: ['a', 'b'].map((host) => ['host', host]) },
    { path: '/a b' },
    { path: '/#a' },
  ]
  for (const changes of refused)
    t.match(await problemOf(await call(changes)), { status: 400, code: 'bad-request' }, JSON.stringify(changes))
  t.strictSame(requests, [])
  const own = ['x-carpool-hops', 'x-carpool-anything', 'connection', 'keep-alive', 'te', 'transfer-encoding', 'upgrade']
  const named = [
    ['connection', 'X-Named, close'],
    ['x-named', '1'],
  ]
  await call({ headers: [...own.map((name) => [name, '1']), ...named, ['host', 'shop.example:80'], ['accept', 'text/plain']] })
  t.strictSame(requests[0]?.headers, [
    ['host', 'shop.example:80'],
    ['accept', 'text/plain'],
  ])
})

t.test('a web page is told nothing, and cannot fill the audit log', async (t) => {
  const { url, audit } = await startControlPlane(t)
  for (const path of ['/healthz', '/readyz', '/v1/openapi.json', '/metrics']) {
    const response = await fetch(url + path, { headers: { origin: 'http://evil.example' } })
    t.match(await problemOf(response), { status: 401, code: 'unauthorized' }, path)
  }
  t.equal((await fetch(`${url}/healthz`)).status, 200)
  t.match(await exchange(url.replace('127.0.0.1', 'localhost'), ['GET /healthz HTTP/1.1']), /^HTTP\/1\.1 200 /)
  t.strictSame(await audit.newest(10), [])
})

t.test('a request for another host is refused, wherever it names that', async (t) => {
  const { url } = await startControlPlane(t)
  const { host } = new URL(url)
  // The header that `exchange` adds names no port.
  const own = `http://${host.split(':')[0]}`
  for (const path of ['/v1/functions', '/healthz', '/metrics', '/v1/openapi.json']) {
    for (const elsewhere of [
      'http://evil.test',
      'https://evil.test',
      'http://evil.test?x',
      `http://u@${host}`,
      'http://a:99999',
    ]) {
      t.match(await exchange(url, [`GET ${elsewhere}${path} HTTP/1.1`]), /^HTTP\/1\.1 40[014] /, elsewhere + path)
    }
    t.match(await exchange(url, [`GET ${own}${path} HTTP/1.1`]), /^HTTP\/1\.1 200 /, 'its own may stand there')
    for (const second of ['localhost', 'evil.test', '127.0.0.1']) {
      t.match(await exchange(url, [`GET ${path} HTTP/1.1`, `host: ${second}`]), /^HTTP\/1\.1 40[01] /, `${second} besides`)
    }
  }
  t.match(await exchange(url, ['GET http://evil.test/v1/functions HTTP/1.1']), /"code":"bad-request"[^]*different hosts/)
})

t.test('no header is overlooked for there being many', async (t) => {
  const { url } = await startControlPlane(t)
  const many = Array.from({ length: 2_100 }, () => 'a:')
  const answer = await exchange(url, ['GET /v1/functions HTTP/1.1', ...many, 'origin: http://evil.test'])
  t.match(answer, /^HTTP\/1\.1 401 /)
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
