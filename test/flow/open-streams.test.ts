/** What is open at a moment, as operators see it. */
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import t from 'tap'
import { startServer, until } from '../support/server.ts'
import { connectTo } from '../support/web-socket.ts'

const FUNCTION = `
  import { connect } from 'cloudflare:sockets'
  let finish, opened
  export default {
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      if (pathname === '/events') {
        const body = new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode('data: 1\\n\\n'))
            finish = () => controller.close()
          },
        })
        return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
      }
      if (pathname === '/finish') finish()
      if (pathname === '/open') {
        opened = connect('127.0.0.1:' + searchParams.get('port'))
        await opened.opened
      }
      if (pathname === '/close') await opened.close()
      if (pathname !== '/socket') return new Response('done')
      const [client, server] = Object.values(new WebSocketPair())
      server.accept()
      return new Response(null, { status: 101, webSocket: client })
    },
  }`

t.test('streamed answers, WebSockets and sockets are in status and metrics for as long as they are open', async (t) => {
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8'])
  const upstream = createServer({ allowHalfOpen: false }, (socket) => void socket.on('error', () => {}).resume())
  await once(upstream.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => upstream.close())
  const { port } = upstream.address() as AddressInfo
  await server.deploy('sample', FUNCTION)
  const metrics = async (): Promise<string[]> => {
    const text = await (await fetch(`${server.adminUrl}/metrics`)).text()
    return text.split('\n').filter((line) => line.startsWith('carpool_open_'))
  }
  const seriesOf = (answer: number, websocket: number, socket: number): string[] => [
    `carpool_open_streams{function="sample",kind="answer"} ${answer}`,
    `carpool_open_streams{function="sample",kind="websocket"} ${websocket}`,
    `carpool_open_sockets{function="sample"} ${socket}`,
  ]

  t.equal(await (await server.get('/sample/')).text(), 'done')
  t.strictSame((await server.status()).open, { answer: 0, websocket: 0, socket: 0 })
  t.strictSame(await metrics(), [], 'a call that does not stream has no series')

  const events = await server.get('/sample/events')
  const client = await connectTo(t, `${server.url}/sample/socket`)
  t.equal(await (await server.get(`/sample/open?port=${port}`)).text(), 'done')
  t.strictSame((await server.status()).open, { answer: 1, websocket: 1, socket: 1 })
  t.strictSame(await metrics(), seriesOf(1, 1, 1))
  t.match((await server.carpool('status')).stdout, /^Open: 1 streamed answer, 1 WebSocket, 1 socket\.$/m)

  await server.get('/sample/finish')
  t.equal(await events.text(), 'data: 1\n\n')
  client.socket.close()
  await client.closed
  await server.get('/sample/close')
  await until(async () => Object.values((await server.status()).open).every((count) => count === 0))
  t.strictSame(await metrics(), seriesOf(0, 0, 0))
})
