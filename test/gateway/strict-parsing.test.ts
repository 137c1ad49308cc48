/**
 * What is no plain HTTP/1.1 is refused and ends its connection: it reaches no function, and nothing that comes behind it does.
 */
import t, { type Test } from 'tap'
import { startServer, type TestServer } from '../support/server.ts'
import { connectRaw } from './raw-client.ts'

/** Counts its calls; `/count` does not count. */
const COUNTER = `
  let calls = 0
  export default { fetch: (request) => new Response(String(new URL(request.url).pathname === '/count' ? calls : ++calls)) }`

const POST = 'POST /f/ HTTP/1.1\r\nHost: x\r\n'
const GET = 'GET /f/ HTTP/1.1\r\nHost: x\r\n'
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`
const LAST_CHUNK = '0\r\n\r\n'
const SMUGGLED = 'GET /f/smuggled HTTP/1.1\r\nHost: x\r\n\r\n'

const BAD: ReadonlyArray<readonly [what: string, request: string, code?: string]> = [
  ['Content-Length and Transfer-Encoding', `${POST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding and Content-Length', `${POST}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding twice', `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding twice, once unknown', `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding: identity', `${POST}Transfer-Encoding: identity\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding: chunked, identity', `${POST}Transfer-Encoding: chunked, identity\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding: identity, chunked', `${POST}Transfer-Encoding: identity, chunked\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding: gzip, chunked', `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding: xchunked', `${POST}Transfer-Encoding: xchunked\r\n\r\n${LAST_CHUNK}`],
  ['Transfer-Encoding behind a vertical tab', `${POST}Transfer-Encoding: \x0bchunked\r\n\r\n${LAST_CHUNK}`],
  ['an empty Transfer-Encoding', `${POST}Transfer-Encoding:\r\n\r\n${LAST_CHUNK}`],
  ['a folded Transfer-Encoding', `${POST}Transfer-Encoding:\r\n chunked\r\n\r\n${LAST_CHUNK}`],
  ['a blank before the colon', `${POST}Transfer-Encoding : chunked\r\n\r\n${LAST_CHUNK}`],
  [
    'Transfer-Encoding in HTTP/1.0',
    `POST /f/ HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${LAST_CHUNK}`,
  ],
  ['the same Content-Length twice', `${POST}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`],
  ['two Content-Lengths', `${POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\nab`],
  ['a list of Content-Lengths', `${POST}Content-Length: 2, 2\r\n\r\nab`],
  ['Content-Length: +2', `${POST}Content-Length: +2\r\n\r\nab`],
  ['Content-Length: -1', `${POST}Content-Length: -1\r\n\r\nab`],
  ['Content-Length: 0x2', `${POST}Content-Length: 0x2\r\n\r\nab`],
  ['a Content-Length of more than 64 bits', `${POST}Content-Length: 99999999999999999999\r\n\r\n`],
  ['a folded header', `${GET}X-A: b\r\n c\r\n\r\n`],
  ['bare line feeds', 'GET /f/ HTTP/1.1\nHost: x\n\n'],
  ['a bare line feed', 'GET /f/ HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n'],
  ['a bare carriage return', 'GET /f/ HTTP/1.1\r\nHost: x\rX-A: b\r\n\r\n'],
  ['a NUL in a header', `${GET}X-A: a\0b\r\n\r\n`],
  ['a NUL in a name', `${GET}X\0A: a\r\n\r\n`],
  ['a NUL in the URL', 'GET /f/\0 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a control character', `${GET}X-A: a\x01b\r\n\r\n`],
  ['a header without a colon', `${GET}foo\r\n\r\n`],
  ['a header without a name', `${GET}: v\r\n\r\n`],
  ['a chunk size of more than 64 bits', `${CHUNKED}fffffffffffffffff\r\nab\r\n${LAST_CHUNK}`],
  ['a chunk size that is none', `${CHUNKED}0x1\r\na\r\n${LAST_CHUNK}`],
  ['a negative chunk size', `${CHUNKED}-1\r\na\r\n${LAST_CHUNK}`],
  ['a chunk longer than its size', `${CHUNKED}1\r\nab\r\n${LAST_CHUNK}`],
  ['a chunk that ends in a line feed', `${CHUNKED}1\r\na\n${LAST_CHUNK}`],
  ['20 KB of chunk extensions', `${CHUNKED}1;${'x'.repeat(20_000)}\r\na\r\n${LAST_CHUNK}`],
  ['a line feed in a chunk extension', `${CHUNKED}1;a\nb\r\na\r\n${LAST_CHUNK}`],
  ['a Content-Length in the trailers', `${CHUNKED}0\r\nContent-Length: 9\r\n\r\n`],
  ['17 KB of trailers', `${CHUNKED}0\r\nX: ${'x'.repeat(17_000)}\r\n\r\n`, 'headers-too-large'],
  ['a URL of another host', 'GET http://other/f/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['CONNECT to a path', 'CONNECT /f/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['TRACE', 'TRACE /f/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['PROPFIND', 'PROPFIND /f/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an unknown method', 'FOO /f/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a method in lower case', 'get /f/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['WebSocket', `${GET}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['HTTP/2.0', 'GET /f/ HTTP/2.0\r\nHost: x\r\n\r\n'],
  ['HTTP/1.2', 'GET /f/ HTTP/1.2\r\nHost: x\r\n\r\n'],
  ['HTTP/0.9', 'GET /f/\r\n\r\n'],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['no Host', 'GET /f/ HTTP/1.1\r\n\r\n'],
  ['two Hosts', 'GET /f/ HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n'],
  ['an empty Host', 'GET /f/ HTTP/1.1\r\nHost:\r\n\r\n'],
  ['a Host with a port beyond all', 'GET /f/ HTTP/1.1\r\nHost: a.test:99999\r\n\r\n'],
  ['a Host that is no IPv4 address', 'GET /f/ HTTP/1.1\r\nHost: 1.2.3.256\r\n\r\n'],
  ['a Host that is no IPv6 address', 'GET /f/ HTTP/1.1\r\nHost: [1::2::3]\r\n\r\n'],
  ['a whole URL of no host', 'GET http://a.test:99999/f/ HTTP/1.1\r\nHost: a.test:99999\r\n\r\n'],
  ['a Host that is a path', 'GET /f/ HTTP/1.1\r\nHost: x/y\r\n\r\n'],
  ['overlong UTF-8', 'GET /f/\xc0\xae\xc0\xae/ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a fragment', 'GET /f/#a HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a backslash', 'GET \\f\\ HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['a blank in the URL', 'GET /f/ x HTTP/1.1\r\nHost: x\r\n\r\n'],
  ['an expectation', `${POST}Expect: a miracle\r\nContent-Length: 2\r\n\r\nab`],
  ['16 KB of headers', `${GET}X-A: ${'x'.repeat(16 * 1024)}\r\n\r\n`, 'headers-too-large'],
  ['101 headers', `${GET}${'X-A: b\r\n'.repeat(100)}\r\n`, 'headers-too-large'],
  ['10,000 headers', `${GET}${'X-A: b\r\n'.repeat(10_000)}\r\n`, 'headers-too-large'],
  ['a URL of 9 KB', `GET /f/${'a'.repeat(9 * 1024)} HTTP/1.1\r\nHost: x\r\n\r\n`, 'headers-too-large'],
  ['a URL of 64 KB', `GET /f/${'a'.repeat(64 * 1024)} HTTP/1.1\r\nHost: x\r\n\r\n`, 'headers-too-large'],
]

/** What is said of no function, and leaves the connection as it is. */
const NOWHERE: ReadonlyArray<readonly [target: string, code: string]> = [
  ['*', 'route-not-found'],
  ['ftp://x/f/', 'route-not-found'],
  ['//f/', 'route-not-found'],
  ['/', 'route-not-found'],
  ['/../f/', 'not-found'],
  ['/%66/', 'not-found'],
  ['/f%00/', 'not-found'],
  ['/%2e%2e/f/', 'not-found'],
  ['/%2e%2e%2ff/', 'not-found'],
  ['/F/', 'not-found'],
  ['/__proto__/', 'not-found'],
]

t.test('what is no HTTP/1.1', async (t) => {
  const server = await startServer(t)
  await server.deploy('f', COUNTER)
  const counted = async (): Promise<number> => Number(await (await server.get('/f/count')).text())
  for (const [what, request, code = 'bad-request'] of BAD) {
    await t.test(what, async (t) => {
      const client = await connectRaw(t, server.url)
      client.send(request + SMUGGLED)
      await checkRefusal(t, await client.answer(), code)
      t.equal(await client.untilClosed(), '', 'it is the only answer')
      t.equal(await counted(), 0, 'no function was called')
    })
  }
  for (const [target, code] of NOWHERE) {
    await t.test(`there is nothing at ${target}`, async (t) => {
      const client = await connectRaw(t, server.url)
      client.send(`OPTIONS ${target} HTTP/1.1\r\nHost: x\r\n\r\nGET /f/count HTTP/1.1\r\nHost: x\r\n\r\n`)
      const answer = await client.answer()
      t.match(answer, { status: 404 })
      t.match(JSON.parse(answer?.body ?? ''), { code })
      t.match(await client.answer(), { status: 200, body: '0' }, 'the connection is in sync')
    })
  }
  await checkOrder(t, server)
})

async function checkRefusal(
  t: Test,
  answer: Awaited<ReturnType<Awaited<ReturnType<typeof connectRaw>>['answer']>>,
  code: string,
) {
  const { status, headers, body = '' } = answer ?? { headers: [] }
  const named = new Map(headers)
  const problem = JSON.parse(body) as { status: number; code: string; detail: string }
  t.match(problem, { code, status })
  t.equal(named.get('x-carpool-error'), code)
  t.match(named.get('x-carpool-invocation'), /^[\da-f-]{36}$/)
  t.equal(named.get('content-type'), 'application/problem+json')
  t.equal(named.get('connection'), 'close')
  t.notMatch(body, /node_modules|\/packages\/|HPE_|at .*\(/, 'nothing of the host')
}

/** No answer passes for that of another request. */
async function checkOrder(t: Test, server: TestServer): Promise<void> {
  await server.deploy(
    'slow',
    `export default { fetch: () => new Promise((resolve) => setTimeout(() => resolve(new Response('slow')), 50)) }`,
  )
  const slow = 'GET /slow/ HTTP/1.1\r\nHost: x\r\n\r\n'
  await t.test('what cannot be read is refused behind the answers to what came before', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(`${slow}${slow}nonsense\r\n\r\n${SMUGGLED}`)
    for (let count = 0; count < 2; count++) t.match(await client.answer(), { status: 200, body: 'slow' })
    t.match(await client.answer(), { status: 400 })
    t.equal(await client.untilClosed(), '')
  })
  await t.test('a body that cannot be read is refused in its place', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(`${slow}${CHUNKED}nonsense\r\n${SMUGGLED}`)
    t.match(await client.answer(), { status: 200, body: 'slow' })
    t.match(await client.answer(), { status: 400 })
    t.equal(await client.untilClosed(), '')
  })
  await t.test('nothing is read behind a request that ends the connection', async (t) => {
    for (const last of ['GET /slow/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 'GET /slow/ HTTP/1.0\r\n\r\n']) {
      const client = await connectRaw(t, server.url)
      client.send(last + SMUGGLED)
      t.match(await client.answer(), { status: 200, body: 'slow' })
      t.equal(await client.untilClosed(), '')
    }
  })
  await t.test('a client that offers HTTP/2 is answered all the same', async (t) => {
    const client = await connectRaw(t, server.url)
    client.send(
      'GET /slow/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n',
    )
    const answer = await client.answer()
    t.match(answer, { status: 200, body: 'slow' })
    t.equal(new Map(answer?.headers).get('connection'), 'close')
    t.equal(await client.untilClosed(), '')
  })
  t.equal(Number(await (await server.get('/f/count')).text()), 0)
}
