import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { fetcher, header, text, upstream } from './fixtures/upstream.ts'

t.test('a request goes out and its response comes back', async (t) => {
  const origin = await upstream(t, (request, response) => {
    response.writeHead(201, 'Well Made', [
      ['Set-Cookie', 'a=1'],
      ['Set-Cookie', 'b=2'],
      ['X-Seen', `${request.method} ${request.url} ${request.headers['content-type']} ${request.headers['content-length']}`],
    ])
    void buffer(request).then((body) => response.end(Buffer.concat([body, Buffer.from([0, 255])])))
  })
  const fetch = fetcher()
  const headers = [['Content-Type', 'text/plain']] as const
  const result = await fetch(`${origin}/a b?q=1#part`, { method: 'post', headers, body: Buffer.from('héllo') })
  t.match(result, { ok: true, status: 201, statusText: 'Well Made', url: `${origin}/a%20b?q=1`, redirected: false })
  if (!result.ok) return
  t.same(Buffer.from(result.body), Buffer.concat([Buffer.from('héllo'), Buffer.from([0, 255])]))
  t.same(header(result.headers, 'set-cookie'), ['a=1', 'b=2'])
  t.same(header(result.headers, 'x-seen'), ['POST /a%20b?q=1 text/plain 6'])
  t.same(header(result.headers, 'connection'), [])
})

t.test('headers of the connection are not for functions to set, and a fetch has its defaults', async (t) => {
  const seen: string[][] = []
  const origin = await upstream(t, (request, response) => {
    seen.push(request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase()))
    response.end(`${request.headers.host} ${request.headers['user-agent']} ${request.headers['accept-encoding']}`)
  })
  const fetch = fetcher()
  const forbidden = [
    'Host',
    'Content-Length',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'Expect',
    'TE',
    'Trailer',
    'Upgrade',
    'Proxy-Authorization',
    'Proxy-Connection',
    'X-Listed',
  ]
  const headers = forbidden.map((name) => [name, name === 'Connection' ? 'close, x-listed' : 'chunked'] as const)
  t.equal(text(await fetch(origin, { headers })), `${origin.slice(7)} carpool gzip, br`)
  t.same(seen[0]?.toSorted(), ['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
  const own = [
    ['User-Agent', 'mine'],
    ['Range', 'bytes=0-1'],
  ] as const
  t.equal(text(await fetch(origin, { headers: own })), `${origin.slice(7)} mine identity`)
})

t.test('what is no valid request is refused before anything is sent', async (t) => {
  const origin = await upstream(t, () => t.fail('was sent'))
  const fetch = fetcher()
  const refusal = async (...args: Parameters<typeof fetch>) => {
    const result = await fetch(...args)
    return result.ok ? 'sent' : result.message
  }
  t.equal(await refusal('not a URL'), 'The URL is not valid.')
  for (const url of [
    'file:///etc/passwd',
    'data:,x',
    'blob:x',
    'ftp://a/',
    'gopher://a/',
    'http+unix://a/',
    'unix:/run/x.sock',
    'ws://a/',
  ])
    t.match(await refusal(url), /^Only http: and https: can be fetched, not /, url)
  t.match(await refusal(origin.replace('//', '//user:secret@')), /^A URL with a user name/)
  for (const method of ['CONNECT', 'trace', 'Track'])
    t.match(await refusal(origin, { method }), /^The method [A-Z]+ cannot be used\.$/)
  t.match(await refusal(origin, { body: Buffer.from('x') }), /^A GET request cannot have a body\.$/)
  const invalid = 'The method or a header of the request is not valid.'
  t.equal(await refusal(origin, { method: 'GET / HTTP/1.1\r\n' }), invalid)
  t.equal(await refusal(origin, { headers: [['x', 'a\r\nHost: evil']] }), invalid)
  t.equal(await refusal(origin, { headers: [['x y', 'a']] }), invalid)
  t.equal(await refusal(origin, { headers: [[':authority', 'a']] }), invalid)
})

t.test('fetches of one origin do not wait for each other', async (t) => {
  const count = 500
  const held: (() => void)[] = []
  const origin = await upstream(t, (_request, response) => {
    held.push(() => response.end('x'))
    if (held.length === count) for (const release of held) release()
  })
  const fetch = fetcher()
  const results = await Promise.all(Array.from({ length: count }, () => fetch(origin)))
  t.ok(results.every(({ ok }) => ok))
})
