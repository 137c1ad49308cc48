/**
 * Clients that send or read slowly, or end their side of the connection: what is held for them is bounded, and nobody else pays.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { FinishedInvocation } from '@carpool/core'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import { gatewayWith, ok } from './support/gateway.ts'

const GET = 'GET /f/ HTTP/1.1\r\nhost: x\r\n\r\n'
const MIB = 1024 * 1024
/** More than the system takes for one connection. */
const LARGE = 'x'.repeat(8 * MIB)

async function connectTo(t: Test, port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function untilClosed(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => (text += String(chunk))).resume()
  await Promise.race([once(socket, 'end'), once(socket, 'close')])
  return text
}

async function untilOpen({ server }: FastifyInstance, most: number): Promise<void> {
  const open = (): Promise<number> => new Promise((resolve) => server.getConnections((_, count) => resolve(count)))
  while ((await open()) > most) await new Promise((resolve) => setTimeout(resolve, 5))
}

function post(length: number, body: string): string {
  return `POST /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n${body}`
}

/** A call that is under way, and waits until it is canceled. */
async function callThatWaits(t: Test) {
  const { promise: canceled, resolve } = Promise.withResolvers<void>()
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>()
  const { app, port } = await gatewayWith(t, ({ cancellation }) => {
    cancellation.onCancel(resolve)
    enter()
    return new Promise(() => {})
  })
  const socket = await connectTo(t, port)
  socket.write(GET)
  await entered
  return { app, socket, canceled }
}

// The first: nothing that another test has left may keep this process alive.
t.test('a gateway that closes waits for what a client has left behind', async (t) => {
  const { app, socket, canceled } = await callThatWaits(t)
  const left = once(socket, 'close')
  socket.destroy()
  await left
  await app.close()
  await canceled
  t.notOk(app.server.listening)
})

t.test('large answers arrive whole, in order, also those to HEAD', async (t) => {
  const body = Buffer.from(Array.from({ length: 3 * MIB + 7 }, (_, index) => index % 251)).toString('latin1')
  const { port } = await gatewayWith(t, () => ok(body))
  const socket = await connectTo(t, port)
  socket.write(`${GET}${GET.replace('GET', 'HEAD')}${GET}${GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')}`)
  const text = await untilClosed(socket)
  const utf8 = Buffer.from(body).toString('latin1')
  t.equal(text.split(utf8).length, 4, 'three bodies')
  t.equal(text.replaceAll(utf8, '').match(/^HTTP\/1\.1 200 OK\r$/gm)?.length, 4)
  t.equal(text.match(new RegExp(`content-length: ${utf8.length}\r`, 'g'))?.length, 4)
})

t.test('a client that does not read its answers is cut', async (t) => {
  const { app, port } = await gatewayWith(t, () => ok(LARGE), { limits: { answerTimeoutMs: 200 } })
  const socket = await connectTo(t, port)
  socket.pause()
  socket.write(GET.repeat(4))
  await untilOpen(app, 0)
  const text = await untilClosed(socket)
  t.ok(text.length < 4 * LARGE.length, `it got ${text.length} bytes`)
})

t.test('a client that does not read refusals is cut', async (t) => {
  const { app, port } = await gatewayWith(t, () => ok(''), { limits: { answerTimeoutMs: 200 } })
  const socket = await connectTo(t, port)
  socket.pause()
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100_000))
  await untilOpen(app, 0)
})

t.test('a client whose answer waits behind one that takes long is not cut', async (t) => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<FinishedInvocation>()
  const bodyOf: Record<string, () => FinishedInvocation | Promise<FinishedInvocation>> = {
    slow: () => answered,
    f: () => ok('quick'),
    large: () => ok(LARGE),
  }
  const { app, port } = await gatewayWith(t, ({ functionName }) => bodyOf[functionName]!(), { limits: { answerTimeoutMs: 200 } })
  const client = await connectTo(t, port)
  client.write(
    `${GET.replace('/f/', '/slow/')}${GET}${GET.replace('/f/', '/').replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n')}`,
  )
  // This one is cut once the others have waited for longer.
  const stalled = await connectTo(t, port)
  stalled.pause()
  stalled.write(GET.replace('/f/', '/large/'))
  await untilOpen(app, 1)
  answer(ok('slow'))
  t.match(await untilClosed(client), /^HTTP\/1\.1 200 [^]*slowHTTP\/1\.1 200 [^]*quickHTTP\/1\.1 404 /)
})

t.test('when too much waits to be read, those who read least are cut', async (t) => {
  const answered: Array<() => void> = []
  let count = 0
  const invoke = () => {
    count++
    for (const check of answered) check()
    return ok(LARGE)
  }
  const untilAnswered = (wanted: number): Promise<void> =>
    new Promise((resolve) => answered.push(() => (count >= wanted ? resolve() : undefined)))
  const { port } = await gatewayWith(t, invoke, { limits: { maxBufferedBytes: 30 * MIB } })
  const slow = await connectTo(t, port)
  slow.pause()
  slow.write(GET.repeat(3))
  await untilAnswered(3)
  const prompt = await connectTo(t, port)
  prompt.write(GET.repeat(2) + GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
  const [slowText, text] = await Promise.all([untilClosed(slow), untilClosed(prompt)])
  t.equal(text.split(LARGE).length, 4)
  t.ok(slowText.length < 3 * LARGE.length)
})

t.test('when too much waits to be read, nobody is cut who has nothing to read', async (t) => {
  const slow = Promise.withResolvers<FinishedInvocation>()
  const { app, port } = await gatewayWith(t, ({ functionName }) => (functionName === 'slow' ? slow.promise : ok(LARGE)), {
    limits: { maxBufferedBytes: 20 * MIB },
  })
  const waiting = await connectTo(t, port)
  waiting.write(GET.replace('/f/', '/slow/') + GET.replace('/f/', '/').replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
  const stalled = await connectTo(t, port)
  stalled.pause()
  stalled.write(GET.repeat(6))
  await untilOpen(app, 1)
  slow.resolve(ok('slow'))
  t.match(await untilClosed(waiting), /^HTTP\/1\.1 200 [^]*slowHTTP\/1\.1 404 /)
})

t.test('when too many bodies are on their way, the one that began first is refused', async (t) => {
  const { port } = await gatewayWith(t, ({ request }) => ok(String(request.body.length)), { limits: { maxBufferedBytes: 1500 } })
  const slow = await connectTo(t, port)
  slow.write(post(1000, 'x'.repeat(900)))
  const quick = await connectTo(t, port)
  quick.write(post(1000, 'x'.repeat(700)))
  t.match(await untilClosed(slow), /^HTTP\/1\.1 503 [^]*"code":"saturated"[^]*1500 bytes/)
  quick.write('x'.repeat(300) + GET.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
  t.match(await untilClosed(quick), /^HTTP\/1\.1 200 [^]*\r\n\r\n1000HTTP\/1\.1 200 [^]*\r\n\r\n0$/)
})

t.test('bodies of calls that are under way are not cut: the one that comes is refused', async (t) => {
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<FinishedInvocation>()
  const invoke = ({ request }: { request: { body: Uint8Array } }) => {
    enter()
    return request.body.length === 900 ? answered : ok('small')
  }
  const { port } = await gatewayWith(t, invoke, { limits: { maxBufferedBytes: 1500 } })
  const first = await connectTo(t, port)
  first.write(post(900, 'x'.repeat(900)))
  await entered
  const second = await connectTo(t, port)
  second.write(post(700, 'x'.repeat(700)))
  t.match(await untilClosed(second), /^HTTP\/1\.1 503 [^]*"code":"saturated"/)
  answer(ok('large'))
  first.write(post(700, 'x'.repeat(700)).replace('host: x', 'host: x\r\nconnection: close'))
  t.match(await untilClosed(first), /\r\n\r\nlargeHTTP\/1\.1 200 [^]*\r\n\r\nsmall$/)
})

t.test('bodies of one function that sleeps leave room for those of others', async (t) => {
  const seen = { sleeping: 0, refused: 0 }
  const invoke = ({ functionName }: { functionName: string }) => {
    if (functionName !== 'f') return ok('awake')
    seen.sleeping++
    return new Promise<FinishedInvocation>(() => {})
  }
  const { port } = await gatewayWith(t, invoke, { limits: { maxBufferedBytes: 10_000 } })
  for (let sent = 1; sent <= 10; sent++) {
    const socket = await connectTo(t, port)
    socket.write(post(900, 'x'.repeat(900)))
    socket.on('data', (text) => (seen.refused += /^HTTP\/1\.1 503 [^]*"code":"saturated"/.test(String(text)) ? 1 : 0))
    while (seen.sleeping + seen.refused !== sent) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  t.strictSame(seen, { sleeping: 4, refused: 6 }, 'about a third of what there is')
  const other = await connectTo(t, port)
  other.write(post(900, 'x'.repeat(900)).replace('/f/', '/g/').replace('host: x', 'host: x\r\nconnection: close'))
  t.match(await untilClosed(other), /^HTTP\/1\.1 200 [^]*awake$/)
})

t.test('a body that goes nowhere is not held while its call is under way', async (t) => {
  const { promise: entered, resolve: enter } = Promise.withResolvers<void>()
  const invoke = ({ request }: { request: { method: string } }) => {
    if (request.method === 'POST') return ok('whole')
    enter()
    return new Promise<FinishedInvocation>(() => {})
  }
  const { port } = await gatewayWith(t, invoke, { limits: { maxBufferedBytes: 1500 } })
  const first = await connectTo(t, port)
  first.write(post(900, 'x'.repeat(900)).replace('POST', 'GET'))
  await entered
  const second = await connectTo(t, port)
  second.write(post(900, 'x'.repeat(900)).replace('host: x', 'host: x\r\nconnection: close'))
  t.match(await untilClosed(second), /^HTTP\/1\.1 200 [^]*whole$/)
})

t.test('a client that has nothing more to send gets its answers', async (t) => {
  const release: Array<() => void> = []
  const { port } = await gatewayWith(t, () => new Promise((resolve) => release.push(() => resolve(ok('late')))))
  for (const version of ['1.1', '1.0']) {
    const socket = await connectTo(t, port)
    const text = untilClosed(socket)
    socket.end(GET.replace('1.1', version).repeat(version === '1.1' ? 2 : 1))
    // It is asked, again and again, whether it is still there, before there is an answer; over HTTP/1.0 it cannot be.
    if (version === '1.1') for (let asked = 0; asked < 2; asked++) await once(socket, 'data')
    else while (release.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    for (const go of release.splice(0)) go()
    const answers = (await text).replaceAll('HTTP/1.1 100 Continue\r\n\r\n', '')
    t.equal(answers.match(/HTTP\/1\.1 200 OK\r/g)?.length, version === '1.1' ? 2 : 1)
    t.match(answers, /late$/)
  }
})

t.test('a client that leaves is missed, and so is one that ends its side before', async (t) => {
  for (const leave of [(socket: Socket) => socket.destroy(), (socket: Socket) => socket.end(() => socket.destroy())]) {
    const { app, socket, canceled } = await callThatWaits(t)
    leave(socket)
    await canceled
    await untilOpen(app, 0)
  }
  t.pass()
})

t.test('a client that ends its side within a request is told', async (t) => {
  const { port } = await gatewayWith(t, () => ok('unreached'))
  for (const part of ['GET /f/ HTT', 'GET /f/ HTTP/1.1\r\nhost: x\r\n', post(10, 'abc')]) {
    const socket = await connectTo(t, port)
    socket.end(part)
    t.match(await untilClosed(socket), /^HTTP\/1\.1 400 [^]*"code":"bad-request"/)
  }
})
