import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import t from 'tap'
import { arrivalsAtOnce, evenArrivals } from '../src/lib/load/arrivals.ts'
import { endCounts, endLine } from '../src/lib/load/call-summary.ts'
import { runLoad, startGenerator } from '../src/lib/load/generator.ts'

type Handler = Parameters<typeof createServer>[1]

async function listen(handler: Handler): Promise<{ server: Server; origin: string; connections: () => number }> {
  let opened = 0
  const server = createServer(handler).on('connection', () => opened++)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => opened }
}

const answering = await listen((request, response) => {
  if (request.url === '/refuse') {
    response.writeHead(503, { 'retry-after': '2', 'x-carpool-error': 'saturated', 'content-length': '2' }).end('no')
  } else if (request.url === '/reset') request.socket.destroy()
  else if (request.url === '/method') {
    const method = request.method ?? ''
    response.writeHead(200, { 'content-length': method.length, 'x-carpool-invocation': '42' }).end(method)
  } else if (request.url !== '/never') response.writeHead(200, { 'content-length': '4' }).end('text')
})

t.test('an open load makes every call on its path, over connections that are kept', async (t) => {
  const before = answering.connections()
  const { calls, latestStartMs, beganMs, connectionsOpened } = await runLoad({
    origin: answering.origin,
    paths: ['/a', '/refuse', '/b'],
    load: { kind: 'open', dueMs: evenArrivals([{ callsPerSecond: 300, durationMs: 300 }]) },
    maxConnections: 3,
  })
  t.equal(calls.length, 90)
  t.strictSame(endCounts(calls), { '200': 60, '503 saturated': 30 })
  t.ok(calls.filter(({ status }) => status === 503).every(({ path, retryAfterSeconds }) => path === 1 && retryAfterSeconds === 2))
  t.ok(connectionsOpened <= 3 && answering.connections() - before === connectionsOpened)
  t.ok(latestStartMs >= 0)
  t.ok(calls.every(({ dueMs, sentMs, endedMs }) => dueMs >= beganMs && sentMs >= dueMs && endedMs >= sentMs))
})

t.test('answers are compared with what they are to be, and calls know their ids if they are asked to', async (t) => {
  const load = { kind: 'open', dueMs: arrivalsAtOnce(4) } as const
  const order = { origin: answering.origin, paths: ['/method', '/a'], load }
  const { calls } = await runLoad({ ...order, method: 'POST', bodies: ['POST', 'other'], keepsIds: true })
  t.strictSame(endCounts(calls), { '200': 2, 'wrong answer': 2 })
  t.ok(calls.every(({ path, id, failure }) => (path === 0 ? id === '42' : failure === 'wrong answer')))
  const { calls: others } = await runLoad({ ...order, bodies: ['GET', 'text'] })
  t.ok(others.every(({ status, failure, id }) => status === 200 && failure === undefined && id === undefined))
})

t.test('calls at once have their connections beforehand, and none is left out', async (t) => {
  const { calls, connectionsOpened } = await runLoad({
    origin: answering.origin,
    paths: ['/'],
    load: { kind: 'open', dueMs: arrivalsAtOnce(500) },
    openConnections: 500,
  })
  t.equal(endLine(calls), '500 x 200')
  t.equal(connectionsOpened, 500)
  t.equal(new Set(calls.map(({ dueMs }) => dueMs)).size, 1)
})

t.test('a closed load makes the calls that each client was given', async (t) => {
  const { calls, connectionsOpened } = await runLoad({
    origin: answering.origin,
    paths: ['/a', '/b'],
    load: { kind: 'closed', clients: 4, callsEach: 5 },
  })
  t.equal(endLine(calls), '20 x 200')
  t.equal(calls.filter(({ path }) => path === 1).length, 10)
  t.equal(connectionsOpened, 4)
})

t.test('a client that heeds Retry-After is stopped while it waits', async (t) => {
  const generator = await startGenerator({
    origin: answering.origin,
    paths: ['/refuse'],
    load: { kind: 'closed', clients: 3, heedsRetryAfter: true },
  })
  generator.begin()
  generator.stop()
  t.match(endLine((await generator.result).calls), /^(none|\d x 503 saturated)$/)
})

t.test('a broken connection is a failure with its code, and the client goes on over another', async (t) => {
  const { calls, connectionsOpened } = await runLoad({
    origin: answering.origin,
    paths: ['/reset'],
    load: { kind: 'closed', clients: 1, callsEach: 3 },
  })
  t.equal(calls.length, 3)
  t.ok(calls.every(({ status, failure }) => status === 0 && (failure === 'CLOSED' || failure === 'ECONNRESET')))
  t.equal(connectionsOpened, 3)
})

t.test('a client that has no answer in time closes its connection', async (t) => {
  const left = Promise.withResolvers<void>()
  const { server, origin } = await listen(() => {})
  server.on('connection', (socket) => socket.once('close', () => left.resolve()))
  const { calls } = await runLoad({ origin, paths: ['/'], load: { kind: 'open', dueMs: arrivalsAtOnce(1) }, leaveAfterMs: 20 })
  t.equal(endLine(calls), '1 x left')
  await left.promise
})

t.test('clients that end with their connection stop without a failure when it is closed in good order', async (t) => {
  let answers = 0
  const { origin } = await listen((_request, response) => {
    answers++
    response.writeHead(200, { 'content-length': '0', ...(answers > 4 && { connection: 'close' }) }).end()
  })
  const load = { kind: 'closed', clients: 2, endsWithConnection: true } as const
  const { calls } = await runLoad({ origin, paths: ['/'], load })
  t.equal(endLine(calls), `${answers} x 200`)
  t.ok(answers >= 6)
})

t.test('nobody there, or no HTTP, is an error that says so', async (t) => {
  const sockets: Socket[] = []
  const babbling = createTcpServer((socket) => {
    sockets.push(socket)
    socket.once('data', () => socket.write('good day\r\n\r\n'))
  }).listen(0, '127.0.0.1')
  await once(babbling, 'listening')
  const origin = `http://127.0.0.1:${(babbling.address() as AddressInfo).port}`
  const load = { kind: 'open', dueMs: arrivalsAtOnce(1) } as const
  const { calls } = await runLoad({ origin, paths: ['/'], load })
  t.equal(endLine(calls), '1 x The answer is not HTTP/1.1.')
  for (const socket of sockets) socket.destroy()
  babbling.close()
  await once(babbling, 'close')
  t.equal(endLine((await runLoad({ origin, paths: ['/'], load })).calls), '1 x ECONNREFUSED')
  await t.rejects(runLoad({ origin, paths: ['/'], load, openConnections: 1 }), /connections: connect ECONNREFUSED/)
})
