import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Holder } from '@carpool/core'
import { Egress } from '@carpool/egress'
import type { StreamToHost } from '@carpool/fleet'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import {
  EgressRelay,
  type EgressRelayParts,
  type FetchedBytes,
  type FetchingHost,
  type FetchingRevision,
} from '../src/host-reports/egress-relay.ts'
import { UnclaimedEgress } from '../src/host-reports/usage-recorder.ts'

const NO_BODY = new Uint8Array()
const LIMITS = { memoryMb: 64, cpuMs: 1_000, wallMs: 20_000, streamMs: 0, idleMs: 0, concurrency: 10 }
const REVISIONS: Readonly<Record<string, FetchingRevision>> = {
  'r1': { functionName: 'own', owner: 'default', limits: LIMITS },
  'listed': { functionName: 'listed', owner: 'default', limits: LIMITS, egress: ['127.0.0.2'] },
  'hasty': { functionName: 'hasty', owner: 'default', limits: { ...LIMITS, wallMs: 60 } },
}

interface Settlement {
  readonly ok: boolean
  readonly status?: number
  readonly message?: string
  readonly body: string
  readonly bytes: FetchedBytes
}

/** Keeps what it is told. */
class Settled implements FetchingHost {
  readonly id = 1
  readonly results = new Map<number, Settlement>()
  readonly #waiting = new Map<number, (settlement: Settlement) => void>()
  readonly #streamed = new Map<number, Uint8Array>()

  settleFetch(_holder: Holder, fetch: number, result: string, body: Uint8Array, bytes: FetchedBytes): void {
    if (this.results.has(fetch)) throw new Error('settled twice')
    const { bytesOut, bytesIn } = bytes
    const settlement = {
      ...(JSON.parse(result) as { ok: boolean }),
      body: Buffer.from(body).toString(),
      bytes: { bytesOut, bytesIn },
    }
    this.results.set(fetch, settlement)
    this.#waiting.get(fetch)?.(settlement)
  }

  sayOfStream(holder: Holder, message: StreamToHost, text = '', body: Uint8Array = NO_BODY): void {
    if (message.type === 'stream-data') {
      this.#streamed.set(message.number, Buffer.concat([this.#streamed.get(message.number) ?? NO_BODY, body]))
    } else if (message.type === 'fetch-settled') {
      this.settleFetch(holder, message.fetch, text, this.#streamed.get(message.fetch) ?? NO_BODY, message)
    }
  }

  until(fetch: number): Promise<Settlement> {
    const settlement = this.results.get(fetch)
    return settlement === undefined ? new Promise((resolve) => this.#waiting.set(fetch, resolve)) : Promise.resolve(settlement)
  }
}

/** Each has a thread, whose start takes longer than all that is tried with it. */
const [open, shut] = [new Egress({ allow: ['127.0.0.0/8'] }), new Egress()]
t.teardown(() => Promise.all([open.close(), shut.close()]))

function relayOf(parts: Partial<EgressRelayParts> = {}, egress = open): EgressRelay {
  return new EgressRelay({ egress, revisionOf: (id) => REVISIONS[id], ...parts })
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
const of = (fetch: number, revision = 'r1') => ({ fetch, revision, id: 'invocation' })

t.test('a fetch is carried out, and its result given to the host that asked', async (t) => {
  const url = await upstream(t, (request, response) => request.pipe(response.writeHead(201)))
  const host = new Settled()
  const chunk = Buffer.from('before ping after')
  relayOf().start(host, of(7), head({ method: 'POST', url }), chunk.subarray(7, 11))
  chunk.fill('x')
  t.match(await host.until(7), { ok: true, status: 201, body: 'ping', bytes: { bytesOut: 4, bytesIn: 4 } })
})

t.test('whose fetch it is decides how long it may take and where to', async (t) => {
  const url = await upstream(t, (request, response) => void (request.url === '/' && response.end('here')))
  const host = new Settled()
  const relay = relayOf()
  relay.start(host, of(1, 'listed'), head({ url }), NO_BODY)
  t.match(await host.until(1), {
    ok: false,
    message: /^127\.0\.0\.1:\d+ is not among the hosts that this function may fetch from \("egress" in its config\)\.$/,
  })
  relay.start(host, of(2, 'hasty'), head({ url: `${url}held` }), NO_BODY)
  t.match(await host.until(2), { ok: false, message: /did not answer within the 60 ms that the fetch had\.$/ })
  relay.start(host, of(3, 'deleted'), head({ url }), NO_BODY)
  t.match(host.results.get(3), {
    ok: false,
    message: 'The function is not deployed any more.',
    bytes: { bytesOut: 0, bytesIn: 0 },
  })
})

t.test('what Carpool adds to a fetch depends on who fetches', async (t) => {
  const url = await upstream(t, (request, response) => response.end(String(request.headers['x-carpool-hops'])))
  const host = new Settled()
  const relay = relayOf({ headersFor: ({ revision, id }) => [['x-carpool-hops', `${revision} ${String(id)}`]] })
  relay.start(host, of(1), head({ url, headers: [['x-carpool-hops', 'forged']] }), NO_BODY)
  relay.start(host, { fetch: 2, revision: 'r1' }, head({ url }), NO_BODY)
  t.equal((await host.until(1)).body, 'r1 invocation')
  t.equal((await host.until(2)).body, 'r1 undefined')
})

t.test('nothing that a host can send does harm', async () => {
  const relay = relayOf({}, shut)
  const host = new Settled()
  let fetch = 0
  const parts = { method: fc.jsonValue(), url: fc.jsonValue(), headers: fc.jsonValue(), redirect: fc.jsonValue() }
  const heads = fc.oneof(fc.string(), fc.json(), fc.record(parts, { requiredKeys: [] }).map(head))
  await fc.assert(
    fc.asyncProperty(heads, async (text) => {
      relay.start(host, of(++fetch), text, NO_BODY)
      return !(await host.until(fetch)).ok
    }),
  )
})

t.test('a fetch that is stopped ends at the upstream, and is not settled', async (t) => {
  const left: Promise<unknown>[] = []
  const arrivals = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const url = await upstream(t, ({ socket }) => arrivals[left.push(once(socket, 'close')) - 1]?.resolve())
  const relay = relayOf()
  const host = new Settled()
  const neighbour = new Settled()
  for (const fetch of [1, 2]) relay.start(host, of(fetch), head({ url }), NO_BODY)
  relay.start(neighbour, of(1), head({ url }), NO_BODY)
  await Promise.all(arrivals.map(({ promise }) => promise))
  relay.stop(host, 1)
  relay.stop(host, 99)
  await Promise.race(left)
  relay.stopAll(host)
  relay.start(host, of(3), head({ url }), NO_BODY)
  relay.stop(neighbour, 1)
  await Promise.all(left)
  t.equal(left.length, 3, 'a host that is gone starts no more')
  t.equal(host.results.size, 0)
  t.equal(neighbour.results.size, 0)
})

t.test('what went over for a fetch that was stopped is told', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const url = await upstream(t, (request, response) => {
    response.write('some')
    request.on('data', () => {}).on('end', arrived.resolve)
  })
  const told = Promise.withResolvers<unknown[]>()
  const relay = relayOf({ onUnclaimed: (...args) => told.resolve(args) })
  const host = new Settled()
  relay.start(host, of(1), head({ method: 'POST', url }), Buffer.from('12345'))
  await arrived.promise
  relay.stopAll(host)
  t.match(await told.promise, [host, 'r1', { bytesOut: 5 }])
  t.equal(host.results.size, 0)
})

t.test('a number that is used twice is settled once, for the later fetch', async (t) => {
  const arrived = Promise.withResolvers<void>()
  const url = await upstream(t, (request, response) => (request.url === '/held' ? arrived.resolve() : response.end('later')))
  const relay = relayOf()
  const host = new Settled()
  relay.start(host, of(1), head({ url: `${url}held` }), NO_BODY)
  await arrived.promise
  relay.start(host, of(1), head({ url }), NO_BODY)
  t.match(await host.until(1), { ok: true, body: 'later' })
})

const NO_SOCKETS = { sockets: 0, socketUs: 0 }

t.test('bytes are added up by host and revision, and told once', (t) => {
  const told: unknown[] = []
  const unclaimed = new UnclaimedEgress(({ id }, used) => told.push({ id, ...used }))
  const [one, two] = [1, 2].map((id) => ({ id, settleFetch() {}, sayOfStream() {} }))
  if (one === undefined || two === undefined) return t.end()
  for (let call = 0; call < 100; call += 1) unclaimed.add(one, 'a', { bytesOut: 1, bytesIn: 10 })
  unclaimed.add(one, 'b', { bytesOut: 0, bytesIn: 0 })
  unclaimed.add(two, 'a', { bytesOut: 0, bytesIn: 7 })
  unclaimed.close()
  unclaimed.close()
  t.same(told, [
    { id: 1, type: 'background', revision: 'a', cpuUs: 0, egressBytesOut: 100, egressBytesIn: 1000, ...NO_SOCKETS },
    { id: 2, type: 'background', revision: 'a', cpuUs: 0, egressBytesOut: 0, egressBytesIn: 7, ...NO_SOCKETS },
  ])
  t.end()
})

t.test('they are told soon also if nobody closes', async (t) => {
  const told = Promise.withResolvers<unknown>()
  const unclaimed = new UnclaimedEgress((_host, used) => told.resolve(used))
  unclaimed.add({ id: 1, settleFetch() {}, sayOfStream() {} }, 'a', { bytesOut: 3, bytesIn: 0 })
  // What is told later must not keep the process.
  const alive = setInterval(() => {}, 1_000)
  t.match(await told.promise, { egressBytesOut: 3 })
  clearInterval(alive)
})
