/** How a gateway ends: what is under way and what still comes on open connections is served. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { FinishedInvocation } from '@carpool/core'
import t, { type Test } from 'tap'
import { drain } from '../src/index.ts'
import { gatewayWith, ok } from './support/gateway.ts'

const REQUEST = 'GET /f/ HTTP/1.1\r\nhost: x\r\n\r\n'

async function connectTo(t: Test, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** All that comes until the server closes the connection. */
async function untilClosed(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

/** A gateway whose calls are answered when the test says so. */
async function slowGateway(t: Test) {
  const entered: Array<(finished: FinishedInvocation) => void> = []
  const waiting: Array<() => void> = []
  const gateway = await gatewayWith(t, () => {
    const { promise, resolve } = Promise.withResolvers<FinishedInvocation>()
    entered.push(resolve)
    for (const check of waiting) check()
    return promise
  })
  const untilEntered = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (entered.length >= count) resolve()
      }
      waiting.push(check)
      check()
    })
  return { ...gateway, entered, untilEntered }
}

t.test('while it closes, calls are served, and answers tell the client to connect elsewhere', async (t) => {
  const { url, state } = await gatewayWith(t, () => ok('served'))
  t.equal((await fetch(`${url}/f/`)).headers.get('connection'), 'keep-alive')
  state.phase = 'closing'
  const response = await fetch(`${url}/f/`)
  t.match({ status: response.status, connection: response.headers.get('connection') }, { status: 200, connection: 'close' })
  const refusal = await fetch(url)
  t.match({ status: refusal.status, connection: refusal.headers.get('connection') }, { status: 404, connection: 'close' })
})

t.test('once it is closed, calls are refused', async (t) => {
  const { url, state } = await gatewayWith(t, () => t.fail('it was called') as never)
  state.phase = 'closed'
  const response = await fetch(`${url}/f/`)
  t.equal(response.status, 503)
  t.match(await response.json(), { code: 'draining' })
  t.equal(response.headers.get('retry-after'), '1')
  t.equal(response.headers.get('connection'), 'close')
})

t.test('of several requests on one connection only the last one closes it', async (t) => {
  const { port, state, entered, untilEntered } = await slowGateway(t)
  const socket = await connectTo(t, port)
  socket.write(REQUEST.repeat(3))
  await untilEntered(3)
  state.phase = 'closing'
  for (const finish of entered.toReversed()) finish(ok('late'))
  const text = await untilClosed(socket)
  t.equal(text.match(/HTTP\/1\.1 200/g)?.length, 3)
  t.strictSame(text.match(/^connection: .*$/gim), ['Connection: keep-alive', 'Connection: keep-alive', 'connection: close'])
})

t.test('a drain serves what is under way and what still comes on open connections, and takes no new ones', async (t) => {
  const { app, port, state, entered, untilEntered } = await slowGateway(t)
  const busy = await connectTo(t, port)
  const quiet = await connectTo(t, port)
  busy.write(REQUEST)
  await untilEntered(1)
  state.phase = 'closing'
  const drained = drain(app, { graceMs: 60_000, onGraceOver: () => t.fail('the grace is not over') })
  quiet.write(REQUEST)
  await t.rejects(connectTo(t, port), { code: 'ECONNREFUSED' })
  await untilEntered(2)
  for (const finish of entered) finish(ok('late'))
  for (const socket of [busy, quiet]) t.match(await untilClosed(socket), /^HTTP\/1\.1 200 [^]*connection: close[^]*late$/i)
  await drained
})

t.test('a drain does not wait for connections on which nothing comes', async (t) => {
  const { app, port, url, state } = await gatewayWith(t, () => ok('served'))
  const unused = await connectTo(t, port)
  await (await fetch(`${url}/f/`)).text()
  state.phase = 'closing'
  await Promise.all([drain(app, { graceMs: 60_000 }), untilClosed(unused)])
})

t.test('a drain leaves who reads slowly the time to take all answers', async (t) => {
  const body = '-'.repeat(64 * 1024)
  const called: string[] = []
  const { app, port, state } = await gatewayWith(t, ({ id }) => {
    called.push(id)
    return ok(body)
  })
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const client = await connectTo(t, port)
  client.pause()
  const [socket] = await accepted
  for (let sent = 1; socket.writableLength === 0; sent++) {
    client.write(REQUEST)
    while (called.length < sent) await new Promise((resolve) => setImmediate(resolve))
  }
  state.phase = 'closing'
  const drained = drain(app, { graceMs: 60_000, onGraceOver: () => t.fail('the grace is not over') })
  // Longer than a connection without a request stays open.
  await new Promise((resolve) => setTimeout(resolve, 700))
  const text = await untilClosed(client)
  const answers = text.match(/HTTP\/1\.1 200/g)?.length ?? 0
  t.equal(answers, called.length)
  t.equal(text.split(body).length - 1, called.length)
  await drained
})

t.test('when the grace is over, what is under way is cut, and what comes before that is refused', async (t) => {
  const { app, port, state, untilEntered } = await slowGateway(t)
  const stuck = await connectTo(t, port)
  const quiet = await connectTo(t, port)
  stuck.write(REQUEST)
  await untilEntered(1)
  state.phase = 'closing'
  const onGraceOver = () => {
    state.phase = 'closed'
    quiet.write(REQUEST)
  }
  const drained = drain(app, { graceMs: 20, onGraceOver })
  t.match(await untilClosed(quiet), /^HTTP\/1\.1 503 [^]*"code":"draining"/)
  await untilClosed(stuck).catch(() => '')
  await drained
})

t.test('a gateway that never listened is drained at once', async (t) => {
  const { app } = await gatewayWith(t, () => ok('served'))
  await app.close()
  await drain(app, { graceMs: 60_000 })
})
