/** What takes too much or too long is refused, with the limit, and its connection ends; everybody else is answered. */
import t, { type Test } from 'tap'
import { startServer, type TestServer } from '../support/server.ts'
import { connectRaw, type RawAnswer, type RawClient } from './raw-client.ts'

const HEAD = 'POST /f/ HTTP/1.1\r\nHost: x\r\n'
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`
const LENGTH = `export default { fetch: async (request) => new Response(String((await request.arrayBuffer()).byteLength)) }`
const HELD_MS = 200
const HONEST_MS = 4000

t.test('limits of a request', async (t) => {
  const server = await startServer(t, ['--max-body-bytes', '1000', '--max-headers', '10', '--max-url-bytes', '100'])
  await server.deploy('f', LENGTH)

  await t.test('a body that is said to be too large is refused before any of it', async (t) => {
    for (const length of ['1001', '65536']) {
      const client = await connectRaw(t, server.url)
      client.send(`${HEAD}Content-Length: ${length}\r\n\r\n`)
      await checkRefused(t, client, { status: 413, code: 'body-too-large', limit: /1000 bytes/ })
    }
  })
  await t.test('a large one streams, and the function that wants it as a whole is told of the limit', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(`${HEAD}Content-Length: 10000000\r\n\r\n${'x'.repeat(10_000_000)}`)
    await checkRefused(t, client, { status: 500, code: 'exception', limit: /threw/ })
    await server.untilLogged('f', /1000/)
  })
  await t.test('nor is a client told to go on with it', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(`${HEAD}Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n`)
    await checkRefused(t, client, { status: 413, code: 'body-too-large', limit: /1000 bytes/ })
    t.equal(client.interim, 0)
  })
  await t.test('a client that asks first is told to go on with what is not', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(`${HEAD}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n`)
    const answer = client.answer()
    while (client.interim === 0) await new Promise((resolve) => client.socket.once('data', resolve))
    client.send('hello')
    t.match(await answer, { status: 200, body: '5' })
  })
  await t.test('a body that turns out to be too large is not read to its end', async (t) => {
    const chunks = `400\r\n${'x'.repeat(1024)}\r\n`.repeat(4)
    // A function that wants it as a whole is told of the limit; of what no function gets, the gateway is.
    const refusals = {
      POST: { status: 500, code: 'exception', limit: /threw/ },
      GET: { status: 413, code: 'body-too-large', limit: /1000 bytes/ },
    }
    for (const [method, refusal] of Object.entries(refusals)) {
      const head = CHUNKED.replace('POST', method)
      for (const parts of [[head, chunks], [head + chunks], [head, `3e8\r\n${'x'.repeat(1000)}\r\n`, '1\r\nx\r\n']]) {
        const client = await connectRaw(t, server.url)
        for (const part of parts) client.send(part)
        await checkRefused(t, client, refusal)
      }
    }
    const whole = await connectRaw(t, server.url)
    whole.send(`${CHUNKED}${chunks}0\r\n\r\n`)
    t.equal((await whole.answer())?.status, 413)
  })
  await t.test('a body at the limit is taken, in one piece or in many', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(`${HEAD}Content-Length: 1000\r\n\r\n${'x'.repeat(1000)}`)
    t.match(await client.answer(), { status: 200, body: '1000' })
    client.send(`${CHUNKED}${'1;a=b\r\nx\r\n'.repeat(1000)}0\r\nx-trailer: y\r\n\r\n`)
    t.match(await client.answer(), { status: 200, body: '1000' })
    client.send(`GET /f/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc`)
    t.match(await client.answer(), { status: 200, body: '0' }, 'GET has none, whatever comes with it')
  })
  await t.test('headers and URL', async (t) => {
    const cases = [
      [`GET /f/ HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(10)}\r\n`, /11 headers; the limit is 10\./],
      [`GET /f/?${'x'.repeat(97)} HTTP/1.1\r\nHost: x\r\n\r\n`, /101 bytes; the limit is 100\./],
    ] as const
    for (const [request, limit] of cases) {
      const client = await connectRaw(t, server.url)
      client.send(request)
      await checkRefused(t, client, { status: 431, code: 'headers-too-large', limit })
    }
    const client = await connectRaw(t, server.url)
    client.send(`GET /f/?${'x'.repeat(96)} HTTP/1.1\r\nHost: x\r\n${'a: b\r\n'.repeat(9)}\r\n`)
    t.match(await client.answer(), { status: 200 })
  })
  await t.test('of the requests that wait on one connection, one too many ends it behind its refusal', async (t) => {
    // The first fit into one piece that is read; the last do not.
    for (const count of [33, 1000, 50_000]) {
      const client = await connectRaw(t, server.url)
      client.send('GET /f/ HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(count))
      for (let served = 0; served < 32; served++) t.match(await client.answer(), { status: 200 })
      await checkRefused(t, client, { status: 429, code: 'too-many-requests', limit: /32 requests/ })
    }
  })
  await checkMetrics(t, server)
})

function timesOf(heldMs: number): readonly string[] {
  return ['--header-timeout-ms', String(heldMs), '--body-timeout-ms', String(heldMs), '--body-bytes-per-second', '1000000']
}

t.test('limits on time', async (t) => {
  const server = await startServer(t, timesOf(HELD_MS))
  await server.deploy('f', LENGTH)
  const slow: ReadonlyArray<readonly [what: string, text: string, next: string]> = [
    ['a connection on which nothing comes', '', ''],
    ['headers that do not end', 'GET /f/ HTTP/1.1\r\n', ''],
    ['headers that come byte by byte', 'GET /f/ HTTP/1.1\r\nX-A: ', 'a'],
    ['a body that does not end', `${HEAD}Content-Length: 1000\r\n\r\nabc`, ''],
    ['a body that comes byte by byte', `${HEAD}Content-Length: 1000\r\n\r\n`, 'a'],
    ['chunks that come byte by byte', CHUNKED, '1\r\na\r\n'],
    ['a chunk size that does not end', CHUNKED, '0'],
    ['a chunk of 64 bits', `${CHUNKED}ffffffffffffffff\r\n`, 'a'],
    ['a body that nobody wants', `GET /f/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n`, ''],
  ]
  await Promise.all(
    slow.map(([what, text, next]) =>
      t.test(what, async (t) => {
        const client = await connectRaw(t, server.url)
        client.send(text)
        const more = setInterval(() => client.send(next), 20)
        t.teardown(() => clearInterval(more))
        await checkRefused(t, client, { status: 408, code: 'request-timeout', limit: /200 ms/ })
      }),
    ),
  )
})

t.test('what came before something that takes too long is answered', async (t) => {
  // An honest request has to arrive in this time also on a machine with a lot to do.
  const server = await startServer(t, timesOf(HONEST_MS))
  await server.deploy('f', LENGTH)
  const client = await connectRaw(t, server.url)
  client.send(`GET /f/ HTTP/1.1\r\nHost: x\r\n\r\n${HEAD}`)
  t.match(await client.answer(), { status: 200, body: '0' })
  await checkRefused(t, client, { status: 408, code: 'request-timeout', limit: new RegExp(`${HONEST_MS} ms`) })
  t.equal(await (await server.get('/f/', { method: 'POST', body: 'hello' })).text(), '5')
})

t.test('limits on connections', async (t) => {
  const server = await startServer(t, ['--max-connections', '8', '--address-connections', '5'])
  await server.deploy('f', LENGTH)
  const get = 'GET /f/ HTTP/1.1\r\nHost: x\r\n\r\n'
  const from = (localAddress: string): Promise<RawClient> => connectRaw(t, server.url, localAddress)
  const idle = await Promise.all(Array.from({ length: 5 }, () => from('127.0.0.2')))
  await checkRefused(t, await from('127.0.0.2'), { status: 429, code: 'too-many-requests', limit: /5 connections/ })
  const others = await Promise.all(Array.from({ length: 3 }, () => from('127.0.0.3')))
  const refused = await checkRefused(t, await from('127.0.0.4'), { status: 503, code: 'saturated', limit: /8 connections/ })
  t.match(new Map(refused?.headers).get('retry-after'), /^[12]$/)
  await t.test('those that have been idle for longest make room', async (t) => {
    let answer: RawAnswer | undefined
    do {
      const client = await from('127.0.0.4')
      client.send(get)
      answer = await client.answer()
    } while (answer?.status !== 200)
    t.equal(await idle[0]?.untilClosed(), '')
    for (const client of others) client.send(get)
    for (const client of others) t.match(await client.answer(), { status: 200 })
  })
})

async function checkRefused(
  t: Test,
  client: RawClient,
  { status, code, limit }: { status: number; code: string; limit: RegExp },
): Promise<RawAnswer | undefined> {
  const answer = await client.answer()
  t.equal(answer?.status, status)
  t.match(JSON.parse(answer?.body ?? '{}'), { code, detail: limit })
  t.equal(await client.untilClosed(), '', 'the connection ends')
  return answer
}

async function checkMetrics(t: Test, server: TestServer): Promise<void> {
  const text = await (await fetch(`${server.adminUrl}/metrics`)).text()
  t.match(text, /carpool_shed_total\{reason="body-too-large"\} 7/)
  t.match(text, /carpool_shed_total\{reason="headers-too-large"\} 2/)
}
