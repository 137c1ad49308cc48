/**
 * Requests for another protocol, which Node.js takes off the HTTP server with their connections: what came before them is
 * answered all the same, and nothing of them is left behind.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { NO_USAGE, type Call, type FinishedInvocation } from '@carpool/core'
import t, { type Test } from 'tap'
import { ByteBudget } from '../src/byte-budget.ts'
import { drain } from '../src/index.ts'
import { gatewayWith, ok, recordOf } from './support/gateway.ts'
import { streamingGateway } from './support/streaming-host.ts'

const GET = 'GET /f/ HTTP/1.1\r\nhost: x\r\n\r\n'
const CONNECT = 'CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n'
const UPGRADE =
  'GET /f/ HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'
/** More than Node.js writes at once. */
const LARGE = 'x'.repeat(1_000_000)

async function clientOf(t: Test, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' })
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

t.test('one behind a request that was answered at once is refused, and the server goes on', async (t) => {
  const { port, faults } = await gatewayWith(t, () => ok('here'))
  for (const other of [UPGRADE, CONNECT]) {
    const client = await clientOf(t, port)
    client.write(`GET / HTTP/1.1\r\nhost: x\r\n\r\n${other}`)
    t.match(await text(client), /^HTTP\/1\.1 404 [^]*HTTP\/1\.1 400 /)
  }
  const client = await clientOf(t, port)
  client.write(GET.replace('host', 'connection: close\r\nhost'))
  t.match(await text(client), /here$/)
  t.strictSame(faults, [])
})

t.test('large answers arrive whole: to a request for a WebSocket, and with one behind them', async (t) => {
  const { port } = await gatewayWith(t, () => ok(LARGE))
  for (const requests of [UPGRADE, GET + UPGRADE, GET + CONNECT]) {
    const client = await clientOf(t, port)
    client.write(requests)
    t.match(await text(client), LARGE)
  }
})

t.test('a client that does not read the answer to its request for a WebSocket is cut', async (t) => {
  const { port, app } = await gatewayWith(t, () => ok('x'.repeat(8_000_000)), { limits: { answerTimeoutMs: 200 } })
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const client = await clientOf(t, port)
  client.pause()
  client.write(UPGRADE)
  const [socket] = await accepted
  await once(socket, 'close')
})

t.test('nothing is held of a stream that waits its turn when its client leaves, with another protocol behind it', async (t) => {
  const budgets = new Set<ByteBudget>()
  const { open } = ByteBudget.prototype
  ByteBudget.prototype.open = function (cut) {
    budgets.add(this)
    return open.call(this, cut)
  }
  t.teardown(() => (ByteBudget.prototype.open = open))
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  client.write(GET.repeat(2) + CONNECT)
  const [slow, streamed] = [await nextCall(), await nextCall()]
  streamed.begin()
  streamed.write(Buffer.alloc(50_000))
  streamed.end()
  const held = (): number => [...budgets].reduce((sum, { heldBytes }) => sum + heldBytes, 0)
  while (held() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  client.resetAndDestroy()
  await slow.until(() => slow.call.isCanceled)
  while (held() > 0) await new Promise((resolve) => setTimeout(resolve, 5))
})

t.test('the drain ends when its grace is over, also with calls of such connections under way', async (t) => {
  for (const requests of [UPGRADE, GET + CONNECT]) {
    const called = Promise.withResolvers<void>()
    const { app, port, state } = await gatewayWith(t, () => {
      called.resolve()
      return new Promise<FinishedInvocation>(() => {})
    })
    const client = await clientOf(t, port)
    client.write(requests)
    await called.promise
    state.phase = 'closing'
    await drain(app, { graceMs: 20, onGraceOver: () => (state.phase = 'closed') })
    t.notOk(app.server.listening)
  }
})

t.test('what clients send before their WebSockets are accepted counts', async (t) => {
  const calls: Call[] = []
  const { port, app } = await gatewayWith(t, () => Promise.reject(new Error('unused')), {
    limits: { maxBufferedBytes: 100_000 },
    invoke: (call) => void calls.push(call),
  })
  const sockets: Socket[] = []
  app.server.on('connection', (socket) => sockets.push(socket))
  const clients: Socket[] = []
  for (let count = 0; count < 4; count++) {
    const client = await clientOf(t, port)
    clients.push(client)
    client.write(UPGRADE + 'x'.repeat(40_000))
    while (calls.length <= count) await new Promise((resolve) => setImmediate(resolve))
    while (sockets[count]!.bytesRead < 40_000 && !sockets[count]!.destroyed) await new Promise((resolve) => setImmediate(resolve))
  }
  t.ok(sockets[0]?.destroyed, 'the first is cut')
  t.notOk(sockets[3]?.destroyed, 'the last is not')
  const [, , , last] = calls
  last!.result = { outcome: 'exception', start: 'warm', usage: NO_USAGE, detail: 'No.' }
  last!.record = recordOf(last!.id)
  last!.end(undefined)
  t.match(await text(clients[3]!), /^HTTP\/1\.1 500 /)
})
