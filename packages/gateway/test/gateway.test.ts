import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { CarpoolError, FROM_OUTSIDE, NO_USAGE, type ErrorCode, type FinishedInvocation } from '@carpool/core'
import t from 'tap'
import { gatewayWith, ok, recordOf, type SeenCall } from './support/gateway.ts'

/** Sends raw bytes and reads until the server closes or the answer to it is whole. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  return answer
}

t.test('a request reaches the function with its name taken off the path', async (t) => {
  const seen: SeenCall[] = []
  const { url } = await gatewayWith(t, (request) => {
    seen.push(request)
    return ok('hi')
  })
  const response = await fetch(`${url}/shop/cart/7?x=1%20y`, {
    method: 'POST',
    body: 'äö',
    headers: { 'X-One': '1', 'x-carpool-invocation': 'forged', 'content-type': 'strange/type' },
  })
  t.equal(await response.text(), 'hi')
  t.equal(response.headers.get('x-carpool-invocation'), 'i-1')
  t.equal(response.headers.get('server-timing'), 'queue;dur=1.5, init;dur=0.02, cpu;dur=0.3, exec;dur=8')
  const [first] = seen
  if (first === undefined) return t.fail('the request did not arrive')
  const { functionName, request } = first
  t.equal(functionName, 'shop')
  t.match(request.url, /\/cart\/7\?x=1%20y$/)
  t.equal(Buffer.from(request.body).toString(), 'äö')
  const headers = new Map(request.headers)
  t.equal(headers.get('x-one'), '1')
  t.equal(headers.get('x-forwarded-prefix'), '/shop')
  t.notOk(headers.has('x-carpool-invocation'), 'what only Carpool may set is not taken from callers')
  t.notOk(headers.has('connection'))
})

t.test('headers that are for the connection alone go no further, by whatever name', async (t) => {
  const { port } = await gatewayWith(t, ({ request }) =>
    ok(request.headers.map(([name, value]) => `${name}=${value}`).join('\n')),
  )
  for (const options of ['X-Hop, close,,\tX-OTHER , x-forwarded-prefix', 'close\r\nConnection: x-hop\r\nconnection: x-Other']) {
    const head = `GET /f/ HTTP/1.1\r\nHost: x\r\nX-Hop: 1\r\nx-other: 2\r\nX-Hop-Not: 3\r\nKeep-Alive: 4\r\n`
    const answer = await raw(port, `${head}Connection: ${options}\r\n\r\n`)
    t.equal(answer.split('\r\n\r\n')[1], 'host=x\nx-hop-not=3\nx-forwarded-prefix=/f')
  }
})

for (const path of ['/f', '/f/', '/f?q=1', '/f/a/b']) {
  t.test(`${path} reaches the function`, async (t) => {
    const { url } = await gatewayWith(t, ({ functionName, request }) => ok(`${functionName} ${new URL(request.url).pathname}`))
    t.equal(await (await fetch(url + path)).text(), `f ${path === '/f/a/b' ? '/a/b' : '/'}`)
  })
}

for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
  t.test(`${method} is passed on`, async (t) => {
    const { url } = await gatewayWith(t, ({ request }) => ok(request.method))
    t.equal(await (await fetch(`${url}/f/`, { method })).text(), method)
  })
}

t.test('HEAD and statuses without a body carry none', async (t) => {
  const { url } = await gatewayWith(t, ({ request }) =>
    ok(request.method === 'HEAD' ? 'four' : '', [], request.method === 'HEAD' ? 200 : 204),
  )
  const head = await fetch(`${url}/f/`, { method: 'HEAD' })
  t.equal(head.headers.get('content-length'), '4')
  t.equal(await head.text(), '')
  t.equal((await fetch(`${url}/f/`)).status, 204)
})

t.test('the headers of a function are passed on, but those of the connection are not', async (t) => {
  const { url } = await gatewayWith(t, () =>
    ok('body', [
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
      ['content-length', '999'],
      ['transfer-encoding', 'chunked'],
      ['x-carpool-invocation', 'forged'],
      ['x-mine', 'yes'],
    ]),
  )
  const { headers } = await fetch(`${url}/f/`)
  t.strictSame(headers.getSetCookie(), ['a=1', 'b=2'])
  t.equal(headers.get('content-length'), '4')
  t.equal(headers.get('x-carpool-invocation'), 'i-1')
  t.equal(headers.get('x-mine'), 'yes')
})

t.test('a function may send metrics of its own, but none that could pass for ours', async (t) => {
  const ours = 'queue;dur=1.5, init;dur=0.02, cpu;dur=0.3, exec;dur=8'
  const forged = [
    'cpu;dur=0',
    'CPU ; dur=0',
    'db;dur=5, cpu;dur=0',
    'db;dur=5,\texec',
    'db;desc="a, queue;dur=0"',
    'db;desc="a\\", init;dur=0',
    'queue=1',
  ]
  const own = ['db;dur=5.2, cache;desc="hit, cpu2";dur=0', 'cpus;dur=1', 'x;desc="cpu;dur=0"', 'my-queue, exec.sql;dur=3']
  const headers = [...forged, ...own].map((value) => ['server-timing', value] as const)
  const { url } = await gatewayWith(t, () => ok('body', headers))
  t.equal((await fetch(`${url}/f/`)).headers.get('server-timing'), [ours, ...own].join(', '))
})

t.test('large and binary bodies come back byte for byte', async (t) => {
  const bytes = Buffer.from(Array.from({ length: 40_000 }, (_, i) => i % 256))
  const { url } = await gatewayWith(
    t,
    ({ request }) => ({
      record: recordOf('i'),
      result: { outcome: 'ok', start: 'warm', usage: NO_USAGE, response: { status: 200, headers: [], body: request.body } },
    }),
    { limits: { maxBodyBytes: 100_000 } },
  )
  for (const size of [256, 40_000]) {
    const body = bytes.subarray(0, size)
    const echoed = Buffer.from(await (await fetch(`${url}/f/`, { method: 'POST', body })).arrayBuffer())
    t.equal(Buffer.compare(echoed, body), 0, `${size} bytes`)
  }
})

t.test('a failed outcome is a problem document', async (t) => {
  const { url } = await gatewayWith(t, () => ({
    record: recordOf('i-9'),
    result: { outcome: 'timeout', start: 'warm', usage: NO_USAGE, detail: 'No answer within 5 ms.' },
  }))
  const response = await fetch(`${url}/f/`)
  t.equal(response.status, 504)
  t.equal(response.headers.get('content-type'), 'application/problem+json')
  t.match(await response.json(), { status: 504, code: 'timeout', detail: 'No answer within 5 ms.', invocationId: 'i-9' })
})

t.test('a refusal is a problem document, with Retry-After where a retry may help', async (t) => {
  let random = 0.3
  const refuse = () => {
    throw new CarpoolError('saturated', 'Full: 5 of 5.')
  }
  const { url } = await gatewayWith(t, refuse, { random: () => random })
  const response = await fetch(`${url}/f/`)
  t.equal(response.status, 503)
  t.equal(response.headers.get('retry-after'), '1')
  t.match(await response.json(), { code: 'saturated', detail: 'Full: 5 of 5.' })
  random = 0.7
  t.equal((await fetch(`${url}/f/`)).headers.get('retry-after'), '2')
})

t.test('a fault of ours is told to the operator and not to the caller', async (t) => {
  const { url, faults } = await gatewayWith(t, () => {
    throw new Error('secret /path/of/host')
  })
  const response = await fetch(`${url}/f/`)
  t.equal(response.status, 500)
  t.notMatch(await response.text(), /secret|path/)
  t.match(faults[0]?.cause, { message: 'secret /path/of/host' })
})

t.test('a fault of ours before a call begins ends its connection, and nothing else', async (t) => {
  const { url, faults } = await gatewayWith(t, () => ok('hi'), {
    chainOf: (header) => {
      if (header === 'fault') throw new Error('A fault of ours.')
      return FROM_OUTSIDE
    },
  })
  await t.rejects(fetch(`${url}/f`, { headers: { 'x-carpool-hops': 'fault' } }))
  t.match(faults, [{ code: 'internal' }])
  t.equal(await (await fetch(`${url}/f`)).text(), 'hi')
})

t.test('a body over the limit is refused with the limit', async (t) => {
  const { url } = await gatewayWith(t, () => ok('unreached'), { limits: { maxBodyBytes: 10 } })
  const response = await fetch(`${url}/f/`, { method: 'POST', body: 'x'.repeat(11) })
  t.equal(response.status, 413)
  t.match(await response.json(), { code: 'body-too-large', detail: /10 bytes/ })
})

t.test('what is no function is refused as a problem document', async (t) => {
  const { url, port } = await gatewayWith(t, () => ok('unreached'))
  t.match(await (await fetch(url)).json(), { status: 404, code: 'route-not-found' })
  t.match(await raw(port, 'nonsense\r\n\r\n'), /^HTTP\/1\.1 400 [^]*"code":"bad-request"/)
  t.match(
    await raw(port, `GET /f/ HTTP/1.1\r\nhost: x\r\nx-big: ${'x'.repeat(17_000)}\r\n\r\n`),
    /^HTTP\/1\.1 431 [^]*"code":"headers-too-large"/,
  )
})

t.test('a client that leaves is told to the invocation', async (t) => {
  const { promise: canceled, resolve } = Promise.withResolvers<void>()
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>()
  const { url } = await gatewayWith(t, ({ cancellation }) => {
    cancellation.onCancel(resolve)
    enter()
    return new Promise(() => {})
  })
  const controller = new AbortController()
  const call = fetch(`${url}/f/`, { signal: controller.signal })
  await entered
  controller.abort()
  await t.rejects(call, { name: 'AbortError' })
  await canceled
})

t.test('a client that has its answer does not cancel', async (t) => {
  let canceled = false
  const { url } = await gatewayWith(t, ({ cancellation }) => {
    cancellation.onCancel(() => {
      canceled = true
    })
    return ok('done')
  })
  await (await fetch(`${url}/f/`, { headers: { connection: 'close' } })).text()
  await (await fetch(`${url}/f/`)).text()
  t.notOk(canceled)
})

t.test('a prefix that a client made up is not passed on', async (t) => {
  const { url } = await gatewayWith(t, ({ request }) =>
    ok(JSON.stringify(request.headers.filter(([name]) => name === 'x-forwarded-prefix'))),
  )
  const response = await fetch(`${url}/f/`, { headers: { 'x-forwarded-prefix': '/forged' } })
  t.strictSame(await response.json(), [['x-forwarded-prefix', '/f']])
})

t.test('a host that could pass for a path is refused', async (t) => {
  const { port } = await gatewayWith(t, ({ request }) => ok(request.url))
  for (const host of ['a b@c', 'a/other/?', 'a@b', '', '[::1', 'a:b']) {
    t.match(
      await raw(port, `GET /f/ HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`),
      /^HTTP\/1\.1 400 /,
      JSON.stringify(host),
    )
  }
  for (const host of ['a', 'a.b:8080', '127.0.0.1', '[::1]:80', 'a_b', 'xn--bcher-kva.example']) {
    t.match(await raw(port, `GET /f/x HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`), `http://${host}/x`)
  }
})

t.test('a host of which no URL can be made is refused', async (t) => {
  const { port } = await gatewayWith(t, ({ request }) => ok(new URL(request.url).href))
  const hosts = ['a.test:99999', '1.2.3.256', '1.2.3.4.5', '[1::2::3]', '[::1]:65536', '0x1ffffffff']
  for (const host of hosts) {
    for (const request of [
      `GET /f/ HTTP/1.1\r\nhost: ${host}`,
      `GET /f/ HTTP/1.0\r\nhost: ${host}`,
      `GET http://${host}/f/ HTTP/1.1\r\nhost: ${host}`,
      `GET http://${host}/f/ HTTP/1.0`,
    ]) {
      const answer = await raw(port, `${request}\r\nconnection: close\r\n\r\n`)
      t.match(answer, /^HTTP\/1\.1 400 [^]*"code":"bad-request"/, request)
    }
  }
  for (const host of ['a.test:65535', '1.2.3.255', '[1::2:3]', 'a_b.example.', 'XN--BCHER-KVA.example', '127.1']) {
    t.match(await raw(port, `GET /f/x HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`), /^HTTP\/1\.1 200 /, host)
  }
  t.match(await raw(port, 'GET /f/x HTTP/1.0\r\n\r\n'), /http:\/\/localhost\/x$/, 'HTTP/1.0 need not name one')
})

t.test('a whole URL as target, as proxies send it, reaches the function if it names the same host', async (t) => {
  const { port } = await gatewayWith(t, ({ functionName, request }) => ok(`${functionName} ${request.url}`))
  const ask = (host: string): Promise<string> =>
    raw(port, `GET http://shop.example:81/f/x?y=1 HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
  t.match(await ask('Shop.example:81'), /f http:\/\/shop\.example:81\/x\?y=1$/)
  t.match(await ask('shop.example'), /^HTTP\/1\.1 400 [^]*different hosts/)
  const short = 'GET HTTP://x?y HTTP/1.1\r\nhost: x:80\r\nconnection: close\r\n\r\n'
  t.match(await raw(port, short), /^HTTP\/1\.1 404 [^]*route-not-found/)
})

t.test('a path below the name is passed on as it is', async (t) => {
  const { port } = await gatewayWith(t, ({ request }) => ok(request.url))
  t.match(await raw(port, 'GET /f/%zz/..%2f HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'), 'http://x/%zz/..%2f')
})

t.test('one connection cannot have any number of requests wait: one too many ends it', async (t) => {
  const release: Array<() => void> = []
  const invoke = () => new Promise<FinishedInvocation>((resolve) => release.push(() => resolve(ok('late'))))
  const refused: ErrorCode[] = []
  const { promise: isRefused, resolve } = Promise.withResolvers<void>()
  const onRefused = (code: ErrorCode): void => {
    refused.push(code)
    resolve()
  }
  const { port } = await gatewayWith(t, invoke, { onRefused })
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write('GET /f/ HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(40))
  await isRefused
  for (const go of release) go()
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  t.equal(text.match(/HTTP\/1\.1 200/g)?.length, 32)
  t.equal(text.match(/HTTP\/1\.1 429/g)?.length, 1)
  t.strictSame(refused, ['too-many-requests'])
})

t.test('what comes behind the request that was one too many is not read', async (t) => {
  const get = 'GET /f/ HTTP/1.1\r\nhost: x\r\n\r\n'
  // Node.js runs ticks at every 32 headers and at a body, and reads on at the end of a request.
  const post = `POST /f/ HTTP/1.1\r\nhost: x\r\n${'a: b\r\n'.repeat(40)}content-length: 4\r\n\r\nbody`
  for (const refused of [get, post]) {
    const { promise: isRefused, resolve: onRefused } = Promise.withResolvers<unknown>()
    const { app, port } = await gatewayWith(t, () => new Promise(() => {}), { onRefused })
    const accepted = once(app.server, 'connection') as Promise<[Socket]>
    const client = connect(port, '127.0.0.1')
    client.write(get.repeat(32) + refused)
    const [socket] = await accepted
    t.teardown(() => {
      client.destroy()
      socket.destroy()
    })
    await isRefused
    client.write(get.repeat(300_000))
    for (let turn = 0; turn < 300; turn++) await new Promise((resolve) => setImmediate(resolve))
    t.ok(socket.bytesRead < 1e6, `${socket.bytesRead} bytes were read`)
  }
})

t.test('no requests are made of what was read behind a refused one, nor a WebSocket', async (t) => {
  const { app, port } = await gatewayWith(t, async () => ok('called'))
  const requests: string[] = []
  app.server.on('request', ({ url = '' }) => requests.push(url))
  app.server.on('upgrade', ({ url = '' }) => requests.push(url))
  const behind = ['GET /f/1 HTTP/1.1\r\nhost: x', 'GET /f/2 HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket']
  const text = await raw(port, `GET /f/0 HTTP/1.1\r\n\r\n${behind.map((head) => `${head}\r\n\r\n`).join('')}`.repeat(2))
  t.equal(text.match(/HTTP\/1\.1 /g)?.length, 1)
  t.match(text, /^HTTP\/1\.1 400 /)
  t.strictSame(requests, ['/f/0'])
})

t.test('nothing behind a refused request is called, also when requests have to wait for their turn', async (t) => {
  const called: string[] = []
  const { port } = await gatewayWith(t, ({ functionName }) => {
    called.push(functionName)
    const untilMs = performance.now() + 1
    while (performance.now() < untilMs);
    return ok(functionName)
  })
  const busy = connect(port, '127.0.0.1')
  const bad = connect(port, '127.0.0.1')
  await Promise.all([once(busy, 'connect'), once(bad, 'connect')])
  busy.write('GET /busy/ HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(30))
  bad.write('GET /bad/ HTTP/1.1\r\n\r\nGET /behind/ HTTP/1.1\r\nhost: x\r\n\r\n')
  busy.end('GET /last/ HTTP/1.1\r\nhost: x\r\n\r\n')
  let text = ''
  for await (const chunk of bad) text += String(chunk)
  t.equal(text.match(/HTTP\/1\.1 400 /g)?.length, 1)
  for await (const chunk of busy) text += String(chunk)
  t.strictSame(new Set(called), new Set(['busy', 'last']))
})
