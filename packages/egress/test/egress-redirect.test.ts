import { text as consumeText } from 'node:stream/consumers'
import t from 'tap'
import { redirectedHop, type Hop } from '../src/hop.ts'
import { fetcher, text, upstream } from './fixtures/upstream.ts'

const hop = (method: string, url = 'https://a.example/x'): Hop => ({
  url: new URL(url),
  method,
  headers: [
    ['authorization', 'Bearer x'],
    ['cookie', 'a=1'],
    ['content-type', 'text/plain'],
    ['x-own', '1'],
  ],
  body: method === 'GET' || method === 'HEAD' ? null : Buffer.from('body'),
})

t.test('the method and the body change as the fetch standard says', async (t) => {
  const methods = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE']
  const becomesGet: Record<number, string[]> = { 301: ['POST'], 302: ['POST'], 303: ['POST', 'PUT', 'DELETE'], 307: [], 308: [] }
  for (const [status, changed] of Object.entries(becomesGet))
    for (const method of methods) {
      const { method: after, body, headers } = redirectedHop(hop(method), Number(status), '/y')
      const expected = changed.includes(method) ? 'GET' : method
      t.equal(after, expected, `${status} ${method}`)
      t.equal(body === null, expected === 'GET' || expected === 'HEAD')
      t.equal(
        headers.some(([name]) => name === 'content-type'),
        !changed.includes(method),
      )
    }
})

t.test('credentials stay with the origin that they were meant for', async (t) => {
  const names = (location: string) => redirectedHop(hop('POST'), 307, location).headers.map(([name]) => name)
  t.same(names('/y'), ['authorization', 'cookie', 'content-type', 'x-own'])
  t.same(names('https://a.example:443/y'), ['authorization', 'cookie', 'content-type', 'x-own'])
  for (const location of ['https://b.example/', '//b.a.example/', 'https://a.example:444/'])
    t.same(names(location), ['content-type', 'x-own'], location)
  t.throws(() => redirectedHop(hop('GET'), 302, 'http://a.example/'), {
    message: 'A redirect from https: to http: is not followed.',
  })
})

t.test('a location beyond ASCII is read as it is written, in UTF-8', async (t) => {
  const origin = await upstream(t, (request, response) => {
    if (request.url === '/') response.writeHead(302, { location: Buffer.from('/größe').toString('latin1') }).end()
    else response.end(request.url)
  })
  t.equal(text(await fetcher()(origin)), '/gr%C3%B6%C3%9Fe')
})

t.test('redirects are followed to their end, or not at all', async (t) => {
  const other = await upstream(t, (request, response) => {
    void consumeText(request).then((body) => response.end(`${request.method} ${request.headers.authorization} ${body}`))
  })
  const origin = await upstream(t, (request, response) => {
    const left = Number(request.url?.slice(1))
    if (Number.isNaN(left)) response.writeHead(302).end('no location')
    else response.writeHead(left === 0 ? 307 : 302, { location: left === 0 ? other : `/${left - 1}` }).end('moved')
  })
  const fetch = fetcher()
  const headers = [['authorization', 'secret']] as const
  const result = await fetch(`${origin}/0`, { method: 'POST', headers, body: Buffer.from('body') })
  t.match(result, { ok: true, redirected: true, url: `${other}/` })
  t.equal(text(result), 'POST undefined body')
  t.match(await fetch(`${origin}/4`), { ok: true, redirected: true })
  t.equal(text(await fetch(`${origin}/5`)), 'FAILED: There were too many redirects; the limit is 5.')
  t.match(text(await fetch(`${origin}/1`, { redirect: 'error' })), /^FAILED: 127\.0\.0\.1:\d+ answered with a redirect/)
  t.match(await fetch(`${origin}/1`, { redirect: 'manual' }), { ok: true, status: 302, redirected: false })
  t.equal(text(await fetch(`${origin}/nowhere`)), 'no location')
})
