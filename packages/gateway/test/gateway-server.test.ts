import { once } from 'node:events'
import { connect, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { GatewayServer } from '../src/gateway-server.ts'
import { LIMITS } from './support/gateway.ts'

const CONNECTIONS = 300
const GET = 'GET /flood/ HTTP/1.1\r\nhost: x\r\n\r\n'
const QUIET = 'GET /quiet/ HTTP/1.1\r\nhost: x\r\n\r\n'
const POST = 'POST /flood/ HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello'

/** A server that answers each request with its body, and counts its connections. */
async function listen(t: Test): Promise<{ port: number; order: string[]; untilNoneIsOpen(): Promise<void> }> {
  const order: string[] = []
  const server = new GatewayServer({
    limits: LIMITS,
    isFunction: () => true,
    opened: () => {},
    arrived: () => true,
    connecting: (socket) => socket.destroy(),
  }).create((request, response) => {
    order.push(request.url ?? '')
    let body = ''
    request.setEncoding('latin1').on('data', (text: string) => (body += text))
    request.once('end', () => response.end(`answer ${body};`))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const open = (): Promise<number> => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
  const untilNoneIsOpen = async (): Promise<void> => {
    while ((await open()) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return { port: (server.address() as AddressInfo).port, order, untilNoneIsOpen }
}

async function open(t: Test, port: number): Promise<{ socket: Socket; untilAnswers(count: number): Promise<string> }> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  let received = ''
  let check = (): void => {}
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    check()
  })
  const untilAnswers = (count: number): Promise<string> =>
    new Promise((resolve) => {
      check = () => received.split(';').length > count && resolve(received)
      check()
    })
  return { socket, untilAnswers }
}

/** A client of another function: without one, nobody has to wait for a turn. */
async function openQuiet(t: Test, port: number): Promise<Awaited<ReturnType<typeof open>>> {
  const quiet = await open(t, port)
  quiet.socket.write(QUIET)
  await quiet.untilAnswers(1)
  return quiet
}

t.test('connections that are read in turn are all answered, again and again', async (t) => {
  const { port } = await listen(t)
  await openQuiet(t, port)
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  for (let round = 1; round <= 4; round++) {
    for (const { socket } of clients) socket.write(round % 2 === 0 ? POST : GET)
    const answers = await Promise.all(clients.map(({ untilAnswers }) => untilAnswers(round)))
    t.ok(answers.every((text) => text.includes(round % 2 === 0 ? 'answer hello;' : 'answer ;')))
  }
  for (const { socket } of clients) socket.write(GET + POST + GET)
  await Promise.all(clients.map(({ untilAnswers }) => untilAnswers(7)))
})

t.test('a call of another function does not come last', async (t) => {
  const { port, order } = await listen(t)
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  const quiet = await openQuiet(t, port)
  order.length = 0
  for (const { socket } of clients) socket.write(GET)
  quiet.socket.write(QUIET)
  await Promise.all([quiet.untilAnswers(2), ...clients.map(({ untilAnswers }) => untilAnswers(1))])
  t.equal(order.length, CONNECTIONS + 1)
  t.ok(order.indexOf('/quiet/') < CONNECTIONS)
})

t.test('clients that leave while they wait for their turn are gone', async (t) => {
  const { port, untilNoneIsOpen } = await listen(t)
  const quiet = await openQuiet(t, port)
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(t, port)))
  for (const { socket } of clients) socket.write(GET)
  for (const { socket } of [...clients, quiet]) socket.destroy()
  await untilNoneIsOpen()
  t.pass()
})
