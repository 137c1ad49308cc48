/** What goes over the wire, byte by byte, whatever headers a function sets. */
import t, { type Test } from 'tap'
import { fetcher, rawUpstream, text, type Request } from './fixtures/upstream.ts'

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok'

/** Fetches from a server that keeps the request as it came. */
async function capture(t: Test, request: Request, path = '/'): Promise<string[]> {
  let lines: string[] = []
  const { origin } = await rawUpstream(t, (socket, request) => {
    lines = request.split('\r\n')
    socket.end(OK)
  })
  const result = await fetcher()(`${origin}${path}`, request)
  t.equal(text(result), 'ok')
  return lines.map((line) => line.replace(origin.slice('http://'.length), 'ORIGIN'))
}

const CONNECTION_HEADERS = [
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'Connection',
  'Keep-Alive',
  'Expect',
  'TE',
  'Trailer',
  'Upgrade',
  'HTTP2-Settings',
]
const OWN_HEADERS = [
  'CDN-Loop',
  'X-Carpool-Hops',
  'x-carpool-invocation',
  'Proxy-Authorization',
  'proxy-connection',
  'Proxy-Evil',
]

t.test('headers of the connection, of proxies and of Carpool are not for functions to set', async (t) => {
  const headers = [...CONNECTION_HEADERS, ...OWN_HEADERS].map((name) => [name, '1'] as const)
  const defaults = ['accept: */*', 'accept-encoding: gzip, br', 'user-agent: carpool']
  t.same(await capture(t, { headers }), ['GET / HTTP/1.1', 'host: ORIGIN', 'connection: keep-alive', ...defaults, '', ''])
  t.same(await capture(t, { method: 'POST', headers, body: Buffer.from('body') }), [
    'POST / HTTP/1.1',
    'host: ORIGIN',
    'connection: keep-alive',
    ...defaults,
    'content-length: 4',
    '',
    'body',
  ])
  const listed = [
    ['Connection', 'x-listed, X-Other'],
    ['X-Listed', '1'],
    ['x-other', '1'],
    ['x-kept', '1'],
  ] as const
  t.notMatch((await capture(t, { headers: listed })).join('\n'), /listed|other/i)
})

t.test('what Carpool adds is there, once, whatever the function says', async (t) => {
  const lines = await capture(t, { headers: [['x-carpool-hops', '0.forged']], carpoolHeaders: [['x-carpool-hops', '3.mac']] })
  t.same(
    lines.filter((line) => line.startsWith('x-carpool')),
    ['x-carpool-hops: 3.mac'],
  )
})

t.test(
  'what Carpool adds goes along over redirects, also to another origin; what a function adds does not in part',
  async (t) => {
    const seen: string[] = []
    const target = await rawUpstream(t, (socket, request) => {
      seen.push(request)
      socket.end(OK)
    })
    const source = await rawUpstream(t, (socket, request) => {
      seen.push(request)
      const location = request.startsWith('GET /again') ? target.origin : '/again'
      socket.end(`HTTP/1.1 302 Found\r\nlocation: ${location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`)
    })
    const headers = [
      ['authorization', 'secret'],
      ['cookie', 'a=1'],
      ['x-own', '1'],
    ] as const
    t.equal(text(await fetcher()(source.origin, { headers, carpoolHeaders: [['x-carpool-hops', '1.mac']] })), 'ok')
    t.equal(seen.length, 3)
    for (const request of seen) t.equal(request.match(/^x-carpool-hops: 1\.mac\r$/gm)?.length, 1)
    for (const request of seen) t.match(request, /^x-own: 1\r$/m)
    t.same(
      seen.map((request) => /^authorization: /m.test(request) && /^cookie: /m.test(request)),
      [true, true, false],
    )
  },
)

t.test('a URL cannot write lines of its own', async (t) => {
  const [line, ...rest] = await capture(t, {}, '/a\r\nx-evil: 1\r\n\r\nGET /b HTTP/1.1\r\n?q=\r\n %0d%0a')
  t.equal(line, 'GET /ax-evil:%201GET%20/b%20HTTP/1.1?q=%20%0d%0a HTTP/1.1')
  t.notMatch(rest.join('\n'), /evil/)
})
