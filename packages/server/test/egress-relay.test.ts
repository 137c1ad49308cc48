import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createEgress, type EgressOptions } from '@carpool/egress'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { EgressRelay, type FetchingHost } from '../src/egress-relay.ts'

const NO_BODY = new Uint8Array()

/** Keeps what it is told. */
class Settled implements FetchingHost {
  readonly results = new Map<number, { ok: boolean; status?: number; message?: string; body: string }>()

  settleFetch(fetch: number, result: string, body: Uint8Array): void {
    if (this.results.has(fetch)) throw new Error('settled twice')
    this.results.set(fetch, { ...(JSON.parse(result) as { ok: boolean }), body: Buffer.from(body).toString() })
  }
}

function relayOf(t: Test, options: EgressOptions = {}): EgressRelay {
  const egress = createEgress({ allow: ['127.0.0.0/8'], ...options })
  t.teardown(() => egress.close())
  return new EgressRelay(egress)
}

async function upstream(t: Test, handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const head = (given: object): string => JSON.stringify({ method: 'GET', headers: [], redirect: 'follow', ...given })

t.test('a fetch is carried out, and its result given to the host that asked', async (t) => {
  const url = await upstream(t, (request, response) => request.pipe(response.writeHead(201)))
  const host = new Settled()
  await relayOf(t).start(host, { fetch: 7 }, head({ method: 'POST', url }), Buffer.from('ping'))
  t.match(host.results.get(7), { ok: true, status: 201, body: 'ping' })
})

t.test('a head that is not one is answered with a failure, and rejects nothing', async (t) => {
  const url = await upstream(t, () => t.fail('was sent'))
  const relay = relayOf(t)
  const host = new Settled()
  const heads = [
    '',
    'null',
    '5',
    '[]',
    '{"method":"GET","url":"http://x","headers":[],"redirect":"""}',
    '{"method":"GET","url":undefined,"headers":[],"redirect":"follow"}',
    head({}),
    head({ url: 5 }),
    head({ url, method: 5 }),
    head({ url, method: null }),
    head({ url, headers: null }),
    head({ url, headers: {} }),
    head({ url, headers: ['ab'] }),
    head({ url, headers: [['a']] }),
    head({ url, headers: [['a', 'b', 'c']] }),
    head({ url, headers: [['a', 5]] }),
    head({ url, redirect: 'elsewhere' }),
    head({ url: `${url}${'x'.repeat(1024 * 1024)}` }),
  ]
  for (const [fetch, text] of heads.entries()) {
    await relay.start(host, { fetch }, text, NO_BODY)
    t.match(host.results.get(fetch), { ok: false, message: /^The .+\.$/ }, text.slice(0, 80))
  }
})

t.test('nothing that a host can send rejects', async (t) => {
  const relay = relayOf(t, { allow: [] })
  const host = new Settled()
  let fetch = 0
  const parts = { method: fc.jsonValue(), url: fc.jsonValue(), headers: fc.jsonValue(), redirect: fc.jsonValue() }
  const heads = fc.oneof(fc.string(), fc.json(), fc.record(parts, { requiredKeys: [] }).map(head))
  await fc.assert(
    fc.asyncProperty(heads, async (text) => {
      await relay.start(host, { fetch: ++fetch }, text, NO_BODY)
      return host.results.get(fetch)?.ok === false
    }),
  )
})

t.test('a body above the limit is refused with its size and the limit', async (t) => {
  const url = await upstream(t, () => t.fail('was sent'))
  const host = new Settled()
  await relayOf(t, { maxRequestBytes: 10 }).start(host, { fetch: 1 }, head({ method: 'POST', url }), Buffer.alloc(11))
  t.match(host.results.get(1), { ok: false, message: 'The request body has 11 bytes; the limit is 10.' })
})

t.test('a fetch that is stopped ends at the upstream, and is not settled', async (t) => {
  const left: Promise<unknown>[] = []
  const arrivals = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const url = await upstream(t, ({ socket }) => arrivals[left.push(once(socket, 'close')) - 1]?.resolve())
  const relay = relayOf(t)
  const host = new Settled()
  const neighbour = new Settled()
  const fetches = [1, 2].map((fetch) => relay.start(host, { fetch }, head({ url }), NO_BODY))
  const spared = relay.start(neighbour, { fetch: 1 }, head({ url }), NO_BODY)
  await Promise.all(arrivals.map(({ promise }) => promise))
  relay.stop(host, 1)
  relay.stop(host, 99)
  await Promise.race(left)
  relay.stopAll(host)
  await Promise.all(fetches)
  await relay.start(host, { fetch: 3 }, head({ url }), NO_BODY)
  t.equal(left.length, 3, 'a host that is gone starts no more')
  t.equal(host.results.size, 0)
  t.equal(neighbour.results.size, 0)
  relay.stop(neighbour, 1)
  await spared
  await Promise.all(left)
})

t.test('a number that is used twice is settled once, for the later fetch', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const url = await upstream(t, (request, response) => (request.url === '/held' ? arrived.resolve() : response.end('later')))
  const relay = relayOf(t)
  const host = new Settled()
  const held = relay.start(host, { fetch: 1 }, head({ url: `${url}held` }), NO_BODY)
  await arrived.promise
  await Promise.all([held, relay.start(host, { fetch: 1 }, head({ url }), NO_BODY)])
  t.match(host.results.get(1), { ok: true, body: 'later' })
})
