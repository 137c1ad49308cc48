/**
 * Whatever URL a function gives, whatever a resolver answers and wherever servers redirect to: nothing that is closed is ever
 * connected to.
 */
import type { LookupAddress } from 'node:dns'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { NOBODY } from '@carpool/core'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createGuardedConnector } from '../src/guarded-connector.ts'
import { fetcher, text } from './fixtures/upstream.ts'

const OPEN = '127.0.0.2'
const address = (text: string): LookupAddress => ({ address: text, family: text.includes(':') ? 6 : 4 })

/** A server on the only address that is open, and canaries with the same port on those that are closed. */
async function serveBesideCanaries(t: Test, handler: RequestListener): Promise<{ port: number; touched: () => string[] }> {
  const server = createServer(handler).listen(0, OPEN)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const touched: string[] = []
  for (const host of ['127.0.0.1', '::1', '127.0.0.3']) {
    const canary = createTcpServer((socket) => {
      touched.push(host)
      socket.destroy()
    }).listen(port, host)
    await once(canary, 'listening')
    t.teardown(() => canary.close())
  }
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port, touched: () => touched }
}

const CLOSED_SPELLINGS = [
  '127.0.0.1',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'x.localhost',
  '[::1]',
  '[::]',
  '[0:0:0:0:0:0:0:1]',
  '0.0.0.0',
  '0',
  '127.1',
  '127.0.1',
  '2130706433',
  '0x7f.1',
  '0x7f000001',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::127.0.0.1]',
  '[2002:7f00:1::]',
  '[::127.0.0.1]',
  '１２７.0.0.1',
  '127。0。0。1',
  '①②⑦.⓪.⓪.①',
  '127.0.0.3',
]

t.test('every spelling of a closed address is refused, by one text for open and closed ports', async (t) => {
  const { port, touched } = await serveBesideCanaries(t, (_request, response) => response.end('open'))
  const fetch = fetcher({ allow: [OPEN] })
  t.equal(text(await fetch(`http://${OPEN}:${port}/`)), 'open')
  for (const spelling of CLOSED_SPELLINGS) {
    const refusals = []
    // The last one is blocked besides.
    for (const each of [port, 2, 25]) {
      const result = await fetch(`http://${spelling}:${each}/`)
      refusals.push(text(result).replace(`:${each}`, ''))
      t.match(result, { ok: false, end: 'refused', bytesOut: 0, bytesIn: 0 }, `${spelling}:${each}`)
    }
    t.match(refusals[0], /^FAILED: The address of .* is not open to functions\.$/, spelling)
    t.equal(new Set(refusals).size, 1, `the same text for every port of ${spelling}`)
  }
  t.same(touched(), [])
})

t.test('metadata services and private networks are refused by address and by name', async (t) => {
  const names: Record<string, string> = {
    'metadata.google.internal': '169.254.169.254',
    '127.0.0.1.nip.io': '127.0.0.1',
    'router.example': '192.168.1.1',
    'docker.example': '172.17.0.1',
    'cgnat.example': '100.64.0.1',
    'ula.example': 'fd12:3456::1',
    'linklocal.example': 'fe80::1',
    'multicast.example': '239.1.1.1',
  }
  const fetch = fetcher({ allow: [], resolve: async (hostname) => [address(names[hostname] ?? '0.0.0.0')] })
  const literals = [
    '169.254.169.254',
    '[fd00:ec2::254]',
    '100.100.100.200',
    '168.63.129.16',
    '192.0.0.192',
    '[fe80::1]',
    '[ff02::1]',
  ]
  for (const host of [...Object.keys(names), ...literals]) {
    const result = await fetch(`http://${host}/latest/api/token`, {
      method: 'PUT',
      headers: [['x-aws-ec2-metadata-token-ttl-seconds', '60']],
    })
    t.match(result, {
      ok: false,
      end: 'refused',
      message: `The address of ${new URL(`http://${host}/`).host} is not open to functions.`,
    })
  }
  t.match(text(await fetch('http://[fe80::1%25eth0]/')), /URL is not valid/)
})

t.test('tricks with user names, fragments and paths lead to where URLs say', async (t) => {
  const { port, touched } = await serveBesideCanaries(t, (_request, response) => response.end('open'))
  const fetch = fetcher({ allow: [OPEN] })
  t.match(text(await fetch(`http://127.0.0.1:${port}#@${OPEN}:${port}/`)), /address of 127\.0\.0\.1/)
  t.match(text(await fetch(`http://${OPEN}:${port}@127.0.0.1:${port}/`)), /user name/)
  t.match(text(await fetch(`http://127.0.0.1:${port}\\@${OPEN}:${port}/`)), /address of 127\.0\.0\.1/)
  t.match(text(await fetch(`http:127.0.0.1:${port}`)), /address of 127\.0\.0\.1/)
  t.match(text(await fetch(`http:///127.0.0.1:${port}`)), /address of 127\.0\.0\.1/)
  t.match(text(await fetch(`ht\ntp://127.0\t.0.1:${port}`)), /address of 127\.0\.0\.1/)
  t.same(touched(), [])
})

t.test('no connection is ever opened to a refused address', async (t) => {
  const { port, touched } = await serveBesideCanaries(t, (request, response) => {
    const location = decodeURIComponent(request.url?.slice(1) ?? '')
    response.writeHead(307, { location: Buffer.from(location).toString('latin1') }).end()
  })
  let answers: string[][] = []
  // A resolver that says something else each time: names that are rebound.
  const fetch = fetcher({ allow: [OPEN], resolve: async () => (answers.shift() ?? [OPEN]).map(address) })
  const hosts = fc.constantFrom('rebound.example', 'xn--rebound-.example', OPEN, ...CLOSED_SPELLINGS)
  const urls = fc.tuple(fc.constantFrom('http', 'https'), hosts).map(([scheme, host]) => `${scheme}://${host}:${port}/`)
  const addresses = fc.constantFrom(
    OPEN,
    '127.0.0.1',
    '::1',
    '::ffff:127.0.0.1',
    '127.0.0.3',
    '0.0.0.0',
    '::',
    '64:ff9b::7f00:1',
    '10.0.0.1',
    'no address',
  )
  const property = fc.asyncProperty(
    urls,
    fc.array(urls, { maxLength: 3 }),
    fc.array(fc.array(addresses, { maxLength: 4 }), { maxLength: 5 }),
    async (first, redirects, resolved) => {
      answers = resolved
      const last = redirects.reduceRight((location, url) => `${url}${encodeURIComponent(location)}`, first)
      await fetch(last)
      return touched().length === 0
    },
  )
  await fc.assert(property, { numRuns: 300 })
})

t.test('the address that was connected to is checked once more', async (t) => {
  const heard: string[] = []
  const server = createTcpServer((socket) => socket.on('data', (data) => heard.push(String(data)))).listen(0, OPEN)
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  let asked = 0
  const connect = createGuardedConnector({
    policy: { check: () => (asked++ === 0 ? 'permitted' : 'address-refused') },
    connectTimeoutMs: 5_000,
    resolve: async () => [address(OPEN)],
    secure: () => {
      throw new Error('Nothing speaks TLS.')
    },
  })
  const error = await new Promise((resolve) => {
    connect({ hostname: 'late.example', protocol: 'http:', port: String(port), holder: NOBODY }, resolve)
  })
  t.match(error, { code: 'address-refused' })
  t.equal(asked, 2)
  t.same(heard, [])
})
