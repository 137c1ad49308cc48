/** Answers that are written in one go. */
import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HeaderList } from '@carpool/core'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { carpoolGateway, type GatewayLimits } from '../src/index.ts'
import { answerBy, gatewayWith, LIMITS, ok, type Answer } from './support/gateway.ts'

/** The data plane in an app of somebody else's: Node.js writes its answers. */
async function portOfApp(t: Test, answer: Answer): Promise<number> {
  const app = Fastify()
  await app.register(carpoolGateway, {
    prefix: '/app',
    invoke: (call) => void answerBy(call, answer),
    limits: LIMITS,
    onFault: (error) => t.fail(error.message),
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  return (app.server.address() as AddressInfo).port
}

async function connectTo(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** What comes for requests, of which the last one ends the connection. */
async function answersTo(t: Test, port: number, requests: string): Promise<string> {
  const socket = await connectTo(t, port)
  socket.write(requests)
  return (await text(socket)).replaceAll(/^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$/gm, 'Date: now\r')
}

t.test('they read as those that Node.js writes', async (t) => {
  const headers: HeaderList = [
    ['content-type', 'text/plain;charset=UTF-8'],
    ['set-cookie', 'a=1'],
    ['set-cookie', 'b=ä'],
    ['content-disposition', 'attachment; filename="ü.txt"'],
    ['date', 'yesterday'],
    ['connection', 'close'],
    ['transfer-encoding', 'chunked'],
    ['x-empty', ''],
  ]
  const answer: Answer = ({ request: { url } }) => {
    const status = Number(new URL(url).searchParams.get('status') ?? 200)
    return ok(status === 204 || status === 304 ? '' : `body ${status}, ä`, headers, status)
  }
  const { port } = await gatewayWith(t, answer)
  const plain = await portOfApp(t, answer)
  const host = 'host: x\r\n'
  const requests = [
    ...[200, 201, 204, 205, 299, 304, 404, 599].map((status) => `GET /f?status=${status} HTTP/1.1\r\n${host}\r\n`),
    `POST /f HTTP/1.1\r\n${host}content-length: 4\r\n\r\nfour`,
    `HEAD /f HTTP/1.1\r\n${host}\r\n`,
  ]
  const last = `GET /f HTTP/1.1\r\n${host}connection: close\r\n\r\n`
  const below = (all: string): string => all.replaceAll(/(GET|POST|HEAD) \/f/g, '$1 /app/f')
  for (const request of [...requests, `GET /f HTTP/1.0\r\n${host}connection: keep-alive\r\n\r\n`, requests.join('')]) {
    const ours = await answersTo(t, port, request + last)
    t.equal(ours, await answersTo(t, plain, below(request + last)), JSON.stringify(request.slice(0, 40)))
    t.match(ours, /^Date: now\r$/m)
  }
})

/** Has a client that reads nothing ask until answers wait in the server. */
async function untilAnswersWait(t: Test, limits: Partial<GatewayLimits> = {}) {
  let answered: () => void = () => {}
  const { app, port } = await gatewayWith(
    t,
    ({ request: { url } }) => {
      setImmediate(answered)
      return ok(`<${new URL(url).search}>`.padEnd(16_000, '.'))
    },
    { limits },
  )
  const accepted = once(app.server, 'connection')
  const client = await connectTo(t, port)
  client.on('error', () => {}).pause()
  const [server] = (await accepted) as [Socket]
  let count = 0
  // One after the other, so that each answer has the connection to itself when it is written.
  while (server.writableLength === 0) {
    const { promise, resolve } = Promise.withResolvers<void>()
    answered = resolve
    client.write(`GET /f?${count++} HTTP/1.1\r\nhost: x\r\n\r\n`)
    await promise
  }
  return { client, server, count }
}

t.test('they arrive whole and in order, however late the client reads them', async (t) => {
  const { client, count } = await untilAnswersWait(t)
  client.write('GET /f?last HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  const bodies = [...(await text(client)).matchAll(/<\?(\w+)>\.{15000,}/g)].map(([, number]) => number)
  t.strictSame(bodies, [...Array.from({ length: count }, (_, index) => String(index)), 'last'])
})

t.test('a client that takes none of them is cut', async (t) => {
  const { server } = await untilAnswersWait(t, { answerTimeoutMs: 200 })
  await once(server, 'close')
  t.ok(server.destroyed)
})
