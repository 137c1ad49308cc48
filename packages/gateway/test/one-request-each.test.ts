/** Connections on which there is one request at a time, with real clients. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { OneRequestEach, type OneRequestEachOptions } from '../src/index.ts'

const GET = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'
const LIMITS: OneRequestEachOptions = { maxConnections: 10, answerTimeoutMs: 60_000, maxUnreadBytes: 100_000_000 }
/** More than the system takes for one connection. */
const LARGE = Buffer.alloc(8_000_000, 'x')

/** What is read and does not wait. */
const parsedBytes = ({ bytesRead, readableLength }: Socket): number => bytesRead - readableLength

async function serve(t: Test, handle: RequestListener, limits: Partial<OneRequestEachOptions> = {}) {
  const clients = new OneRequestEach({ ...LIMITS, ...limits })
  const server = clients
    .listen(createServer({ IncomingMessage: clients.IncomingMessage }), handle)
    .on('clientError', (cause, socket) => clients.clientFailed(cause, socket as Socket))
  const sockets: Socket[] = []
  server.on('connection', (socket) => sockets.push(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const client = async (): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }
  return { client, sockets, clients }
}

t.test('one request after the other is served, and two at once close the connection', async (t) => {
  let handled = 0
  const { client } = await serve(t, (_request, response) => {
    handled++
    setImmediate(() => response.end('answered'))
  })
  const socket = await client()
  for (let count = 0; count < 3; count++) {
    socket.write(GET)
    t.match(String((await once(socket, 'data'))[0]), /answered$/)
  }
  for (const requests of [GET, GET.replace('host', 'expect: x\r\nhost')]) {
    const before = handled
    const other = await client()
    other.write(requests.repeat(1000))
    await new Promise((resolve) => other.resume().once('close', resolve))
    t.equal(handled, before + 1)
  }
})

t.test('a stream is over when its client sends more, or leaves', async (t) => {
  for (const end of [(socket: Socket) => void socket.write(GET), (socket: Socket) => void socket.destroy()]) {
    const closed = Promise.withResolvers<void>()
    const { client } = await serve(t, (_request, response) => {
      response.once('close', closed.resolve)
      response.flushHeaders()
    })
    const socket = await client()
    socket.write(GET)
    await once(socket, 'data')
    end(socket)
    await closed.promise
  }
})

t.test('what is no HTTP is refused behind the answer that is under way', async (t) => {
  const { client } = await serve(t, (_request, response) => void setImmediate(() => response.end('answered')))
  const socket = await client()
  socket.write(`${GET}nonsense\r\n\r\n`)
  t.match(await text(socket), /^HTTP\/1\.1 200 [^]*answeredHTTP\/1\.1 400 /)
})

t.test('a client that does not take its answer is cut, a stream or not, and one whose answer takes long is not', async (t) => {
  const waiting: Array<() => void> = []
  const { client, sockets } = await serve(
    t,
    (request, response) => {
      if (request.url === '/slow') waiting.push(() => response.end('late'))
      else if (request.url === '/stream') response.write(LARGE)
      else response.end(LARGE)
    },
    { answerTimeoutMs: 200 },
  )
  const patient = await client()
  patient.write(GET.replace('/', '/slow').replace('host', 'connection: close\r\nhost'))
  for (const path of ['/', '/stream']) {
    const stalled = await client()
    stalled.pause()
    stalled.write(GET.replace('/', path))
    const socket = sockets.at(-1)!
    if (!socket.destroyed) await once(socket, 'close')
  }
  for (const answer of waiting) answer()
  t.match(await text(patient), /late$/)
})

t.test('of answers that are not taken no more is in memory than the limit', async (t) => {
  const { client, sockets } = await serve(t, (_request, response) => response.end(LARGE), { maxUnreadBytes: 10_000_000 })
  const stalled = [await client(), await client()]
  for (const one of stalled) {
    one.pause()
    one.write(GET)
  }
  await Promise.race(sockets.map((socket) => once(socket, 'close')))
  t.equal(sockets.filter(({ destroyed }) => destroyed).length, 1)
})

t.test('at the limit, idle connections make room, and busy ones that are kept do not', async (t) => {
  const { client, sockets, clients } = await serve(
    t,
    (request, response) => {
      clients.keep(request, response, 'one')
      response.flushHeaders()
    },
    { maxConnections: 2 },
  )
  const busy = await Promise.all([client(), client()])
  for (const one of busy) {
    one.write(GET)
    await once(one, 'data')
  }
  t.match(await text(await client()), /^HTTP\/1\.1 503 [^]*"saturated"/)
  t.notOk(sockets[0]?.destroyed)
})

t.test(
  'at the limit, connections that are not kept make room, the first ones first, also if an answer is not taken',
  async (t) => {
    const { client, sockets, clients } = await serve(
      t,
      (request, response) => {
        if (request.url !== '/') clients.keep(request, response, 'one')
        if (request.url === '/answered') response.end('x')
        else response.write(LARGE)
      },
      { maxConnections: 4 },
    )
    // In this order, each as busy as it becomes.
    for (const path of ['/kept', '/', '/', '/answered', '/', '/', '/', '/']) {
      const one = await client()
      one.write(GET.replace('/', path))
      await once(one, 'data')
      one.pause()
    }
    t.strictSame(
      sockets.map(({ destroyed }) => destroyed),
      [false, true, true, true, true, false, false, false],
    )
  },
)

t.test('bodies in tiny chunks take turns, also behind their answers', async (t) => {
  for (const isRead of [true, false]) {
    const { client, sockets } = await serve(t, (request, response) => {
      if (isRead) request.resume().once('end', () => response.end('answered'))
      else response.end('answered')
    })
    const clients = await Promise.all(Array.from({ length: 8 }, client))
    while (sockets.length < clients.length) await new Promise((resolve) => setImmediate(resolve))
    const tiny = `POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(100_000)}0\r\n\r\n`
    for (const socket of clients) socket.resume().write(tiny)
    let most = 0
    let before = sockets.map(() => 0)
    while (before.some((bytes) => bytes < tiny.length)) {
      await new Promise((resolve) => setImmediate(resolve))
      const now = sockets.map(parsedBytes)
      const bytes = now.map((count, index) => count - before[index]!).reduce((sum, one) => sum + one)
      most = Math.max(most, bytes)
      before = now
    }
    t.ok(most <= 128 * 1024, `${most} bytes were parsed in one turn`)
  }
})
