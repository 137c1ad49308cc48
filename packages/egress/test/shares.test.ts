/** What one function opens and holds takes nothing from another. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import t from 'tap'
import { affordableConnections } from '../src/limits.ts'
import { createTestFetcher, fetchBy, fetcher, listen, text, upstream, type Result } from './fixtures/upstream.ts'

t.test('a flood that nobody answers leaves another function its connections', async (t) => {
  const held = new Set<unknown>()
  const origin = await upstream(t, (request, response) => {
    if (request.url === '/held') held.add(response)
    else response.end('answered')
  })
  const egress = createTestFetcher({ limits: { maxConnections: 90 } })
  const stopping = new AbortController()
  const flood = Array.from({ length: 400 }, () => fetchBy(egress, `${origin}/held`, { functionName: 'flood' }, stopping.signal))
  for (let call = 0; call < 50; call += 1)
    t.equal(text(await fetchBy(egress, origin, { functionName: 'neighbour', owner: 'another' })), 'answered')
  t.same([egress.reading.open, egress.reading.waiting], [400, 370])
  t.equal(held.size, 30)
  stopping.abort()
  t.ok((await Promise.all(flood)).every(({ end }) => end === 'aborted'))
  t.same([egress.reading.open, egress.reading.waiting, egress.reading.memoryBytes], [0, 0, 0])
  t.equal(text(await fetchBy(egress, origin, { functionName: 'flood' })), 'answered')
})

t.test('fetches that wait go on as soon as others have ended', async (t) => {
  const origin = await upstream(t, (_request, response) => setImmediate(() => response.end('x')))
  const fetch = fetcher({ limits: { maxConnections: 6 } })
  const results = await Promise.all(Array.from({ length: 100 }, () => fetch(origin)))
  t.ok(results.every((result) => text(result) === 'x'))
})

t.test('connections to one origin are limited, and used again', async (t) => {
  const server = createServer((_request, response) => setImmediate(() => response.end('x')))
  let connections = 0
  server.on('connection', () => (connections += 1))
  const port = await listen(t, server)
  const fetch = fetcher({ limits: { maxConnectionsPerOrigin: 9 } })
  const results = await Promise.all(Array.from({ length: 60 }, () => fetch(`http://127.0.0.1:${port}/`)))
  t.ok(results.every(({ ok }) => ok))
  for (let call = 0; call < 20; call += 1) t.ok((await fetch(`http://127.0.0.1:${port}/`)).ok)
  t.equal(connections, 3, 'a third of nine for one function')
})

t.test('functions share no connection', async (t) => {
  const server = createServer((request, response) => response.end(String(request.socket.remotePort)))
  const port = await listen(t, server)
  const fetch = fetcher()
  const portOf = async (functionName: string) => {
    const result = await fetch(`http://127.0.0.1:${port}/`, { functionName })
    // The connection is free one turn later.
    await new Promise((resolve) => setImmediate(resolve))
    return text(result)
  }
  const [first, again, other] = [await portOf('a'), await portOf('a'), await portOf('b')]
  t.equal(first, again)
  t.not(first, other)
})

t.test('idle connections give way when there are as many as there may be', async (t) => {
  const servers = await Promise.all(Array.from({ length: 12 }, () => upstream(t, (_request, response) => response.end('x'))))
  const egress = createTestFetcher({ limits: { maxConnections: 5 } })
  for (const origin of [...servers, ...servers]) t.equal(text(await fetchBy(egress, origin)), 'x')
  t.ok(egress.reading.connections <= 5, `${egress.reading.connections} connections`)
})

t.test('a function waits no longer than its time, and is told what for', async (t) => {
  const origin = await upstream(t, () => {})
  const fetch = fetcher({ limits: { maxConnections: 1 } })
  const results = await Promise.all([fetch(origin, { timeoutMs: 300 }), fetch(origin, { timeoutMs: 60 })])
  t.match(results[0], { message: /did not answer within the 300 ms that the fetch had\.$/ })
  t.match(results[1], { message: /had to wait for other fetches of this function until its 60 ms were over\.$/ })
})

t.test('an invocation has so many fetches at once, and a function so many that wait', async (t) => {
  const origin = await upstream(t, () => {})
  const fetch = fetcher({
    limits: { maxConnections: 1, maxFetchesPerInvocation: 3, maxWaitingPerFunction: 4, totalTimeoutMs: 300 },
  })
  const results = await Promise.all(['a', 'a', 'a', 'a', 'b', 'b', 'c'].map((invocationId) => fetch(origin, { invocationId })))
  const ended = results.map(({ end }) => end)
  t.same(ended, ['failed', 'failed', 'failed', 'refused', 'failed', 'failed', 'refused'])
  t.match(results[3], { message: 'Too many fetches of this invocation are open; the limit is 3 at once.' })
  t.match(results[6], { message: 'Too many fetches of this function wait; the limit is 4.' })
})

t.test('a function that hoards responses has a share of the memory, and others have theirs', async (t) => {
  const body = Buffer.alloc(900_000, 'x')
  const origin = await upstream(t, (request, response) => {
    // Never ends: what has come is kept.
    response.writeHead(200, { 'content-length': 1_000_000 }).write(body)
    if (request.url === '/whole') response.end(Buffer.alloc(100_000, 'x'))
  })
  const egress = createTestFetcher({ limits: { maxMemoryBytes: 10_000_000 } })
  const stopping = new AbortController()
  const hoarded: Result[] = []
  const flood = Array.from({ length: 20 }, async () => {
    const result = await fetchBy(egress, origin, { functionName: 'flood' }, stopping.signal)
    hoarded.push(result)
  })
  // Each of those that are left holds what has come of it.
  while (hoarded.length < 17) await new Promise((resolve) => setImmediate(resolve))
  const refused = 'The open fetches of this function take more memory than its share of the 10000000 bytes for all functions.'
  for (const result of hoarded) t.match(result, { ok: false, end: 'refused', message: refused })
  const neighbour = await fetchBy(egress, `${origin}/whole`, { functionName: 'neighbour', owner: 'another' })
  t.equal(neighbour.body.length, 1_000_000)
  t.ok(egress.reading.memoryBytes <= 3_400_000, `${egress.reading.memoryBytes} bytes are held`)
  stopping.abort()
  await Promise.all(flood)
  t.equal(egress.reading.memoryBytes, 0)
})

t.test('an abort storm leaves nothing open', async (t) => {
  const server = createServer(() => {})
  const port = await listen(t, server)
  const open = new Set<unknown>()
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
  })
  const egress = createTestFetcher()
  for (let round = 0; round < 20; round += 1) {
    const storm = new AbortController()
    const fetches = Array.from({ length: 25 }, () => fetchBy(egress, `http://127.0.0.1:${port}/`, {}, storm.signal))
    if (round % 2 === 0) await once(server, 'request')
    storm.abort()
    await Promise.all(fetches)
  }
  t.same(egress.reading, { open: 0, waiting: 0, connections: 0, sockets: 0, memoryBytes: 0 })
  while (open.size > 0) await new Promise((resolve) => setImmediate(resolve))
})

t.test('connections leave files for clients, hosts and the ledger', async (t) => {
  t.equal(affordableConnections(100, 1000), 100)
  t.equal(affordableConnections(1000, 1000), 250, 'of 1000, clients have 650')
  t.equal(affordableConnections(1000, 1), 1)
  t.equal(affordableConnections(1000, Infinity), 1000)
  t.ok(affordableConnections(1_000_000) > 10)
})

t.test('a flood of twenty functions of one owner comes to no more connections than one function of another', async (t) => {
  const held: ServerResponse[] = []
  const origin = await upstream(t, (_request, response) => void held.push(response))
  const egress = createTestFetcher({ limits: { maxConnections: 90 } })
  const stopping = new AbortController()
  const open = { many: 0, one: 0 }
  const keepFetching = async (owner: 'many' | 'one', functionName: string): Promise<void> => {
    while (!stopping.signal.aborted) await fetchBy(egress, `${origin}/${owner}`, { functionName, owner }, stopping.signal)
  }
  const many = Array.from({ length: 20 }, (_, index) => Array.from({ length: 10 }, () => keepFetching('many', `many-${index}`)))
  const one = Array.from({ length: 200 }, () => keepFetching('one', 'one'))
  // Every answer makes room for another fetch. Shares are of what others leave, so once both have theirs there are 44 to 46.
  const untilHeld = async (): Promise<void> => {
    do await new Promise((resolve) => setImmediate(resolve))
    while (held.length < 42)
  }
  for (let answered = 0; answered < 400; answered++) {
    await untilHeld()
    held.splice((answered * 7) % held.length, 1)[0]?.end('x')
  }
  await untilHeld()
  for (const { req } of held) open[req.url === '/one' ? 'one' : 'many']++
  t.ok(open.one >= 0.75 * open.many, `${open.one} and ${open.many} connections`)
  stopping.abort()
  await Promise.all([...many.flat(), ...one])
})
