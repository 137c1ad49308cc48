import type { LookupAddress } from 'node:dns'
import { createServer } from 'node:http'
import t from 'tap'
import type { Resolve } from '../src/resolver.ts'
import { fetcher, listen, text, upstream } from './fixtures/upstream.ts'

const address = (text: string): LookupAddress => ({ address: text, family: text.includes(':') ? 6 : 4 })

t.test('no spelling of the machine itself reaches it', async (t) => {
  const server = createServer(() => t.fail('was reached'))
  server.on('connection', () => t.fail('was connected to'))
  const port = await listen(t, server, '::')
  const fetch = fetcher({ allow: [] })
  const hosts = [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '[::]',
    '0.0.0.0',
    '0',
    '127.1',
    '2130706433',
    '0x7f.1',
    '017700000001',
    '[::ffff:127.0.0.1]',
  ]
  for (const host of [
    ...hosts,
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '１２７.0.0.1',
    '169.254.169.254',
    '[fd00:ec2::254]',
    '100.100.100.200',
  ]) {
    const result = await fetch(`http://${host}:${port}/`)
    const shown = new URL(`http://${host}:${port}/`).host
    t.match(result, { ok: false, end: 'refused', message: `The address of ${shown} is not open to functions.` }, host)
  }
})

t.test('a name with a dot at its end reaches the machine no more than without', async (t) => {
  // Some resolvers know it, some do not.
  t.match(
    text(await fetcher({ allow: [] })('http://localhost.:8/')),
    /is not open to functions|is not known|could not be resolved/,
  )
})

t.test('a closed port behind a refused address looks like an open one', async (t) => {
  const fetch = fetcher({ allow: [] })
  t.equal(text(await fetch('http://127.0.0.1:2/')), 'FAILED: The address of 127.0.0.1:2 is not open to functions.')
})

t.test('a name is resolved once, and only a checked address of it is connected to', async (t) => {
  const origin = await upstream(t, (request, response) => response.end(request.headers.host))
  const { port } = new URL(origin)
  const answers = [[address('10.0.0.1'), address('fe80::1'), address('127.0.0.1')], [address('10.0.0.1')]]
  let asked = 0
  const resolve: Resolve = async () => answers[asked++] ?? []
  const fetch = fetcher({ resolve })
  t.equal(text(await fetch(`http://rebound.example:${port}/`)), `rebound.example:${port}`)
  t.equal(asked, 1)
  // Another origin, so another connection: now the name has only the private address.
  t.equal(text(await fetch('http://rebound.example:8/')), 'FAILED: The address of rebound.example:8 is not open to functions.')
  t.equal(asked, 2)
})

t.test('fetches that begin together look their name up once', async (t) => {
  const origin = await upstream(t, (_request, response) => response.end('here'))
  let asked = 0
  const resolve: Resolve = async () => {
    asked += 1
    await new Promise((resolve) => setImmediate(resolve))
    return [address('127.0.0.1')]
  }
  const fetch = fetcher({ resolve })
  const url = `http://crowded.example:${new URL(origin).port}/`
  const results = await Promise.all(Array.from({ length: 20 }, () => fetch(url)))
  t.ok(results.every((result) => text(result) === 'here'))
  t.equal(asked, 1)
})

t.test('a name that resolves to nothing or not at all is told apart from a refused one', async (t) => {
  const resolve: Resolve = async (hostname) => {
    const code = hostname === 'unknown.example' ? 'ENOTFOUND' : 'EAI_AGAIN'
    throw Object.assign(new Error(`getaddrinfo ${code} by 10.1.2.3`), { code })
  }
  const fetch = fetcher({ resolve })
  t.equal(text(await fetch('http://unknown.example/')), 'FAILED: The host name of unknown.example is not known.')
  t.equal(text(await fetch('http://flaky.example/')), 'FAILED: The host name of flaky.example could not be resolved.')
})

t.test('every address of a name is tried', async (t) => {
  const origin = await upstream(t, (_request, response) => response.end('here'))
  const resolve: Resolve = async () => [address('127.0.0.2'), address('127.0.0.1')]
  t.equal(text(await fetcher({ resolve })(`http://two.example:${new URL(origin).port}/`)), 'here')
})

t.test('a redirect leads to no address that is closed', async (t) => {
  const target = createServer(() => t.fail('was reached'))
  target.on('connection', () => t.fail('was connected to'))
  const targetPort = await listen(t, target, '::1')
  const origin = await upstream(t, (request, response) => {
    response.writeHead(302, { location: decodeURIComponent(request.url?.slice(1) ?? '') }).end()
  })
  const fetch = fetcher({ allow: ['127.0.0.0/8'] })
  const redirected = async (location: string) => text(await fetch(`${origin}/${encodeURIComponent(location)}`))
  t.equal(await redirected(`http://[::1]:${targetPort}/`), `FAILED: The address of [::1]:${targetPort} is not open to functions.`)
  t.match(await redirected('http://169.254.169.254/latest'), /169\.254\.169\.254 is not open/)
  t.match(await redirected('file:///etc/passwd'), /Only http: and https:/)
  t.match(await redirected('http://user@127.0.0.1/'), /user name/)
  t.match(await redirected('//[::1]:22/'), /address of \[::1\]:22 is not open/)
  t.match(await redirected('http://'), /not valid/)
})
