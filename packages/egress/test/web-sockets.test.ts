/** WebSockets that functions open, with real peers. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Socket } from 'node:net'
import { createHash } from 'node:crypto'
import t, { type Test } from 'tap'
import { WebSocketServer, type WebSocket } from 'ws'
import { FrameCutter } from '../src/frame-cutter.ts'
import { identity } from './fixtures/certificates.ts'
import { TestSockets, type TestSocket } from './fixtures/test-sockets.ts'
import { listen } from './fixtures/upstream.ts'

const KB = 1024

/** Serves WebSockets with `handler`. */
async function peer(t: Test, handler: (socket: WebSocket, request: IncomingMessage) => void): Promise<string> {
  const server = createServer()
  const sockets = new WebSocketServer({ server, handleProtocols: (offered) => [...offered].at(-1) ?? false })
  sockets.on('connection', (socket, request) =>
    handler(
      socket.on('error', () => {}),
      request,
    ),
  )
  t.teardown(() => sockets.clients.forEach((client) => client.terminate()))
  return `ws://127.0.0.1:${await listen(t, server)}/path?query`
}

const open = (sockets: TestSockets, url: string, target = {}, request = {}): TestSocket =>
  sockets.open({ kind: 'websocket', url, protocols: [], headers: [], ...target }, request)

const echo = (socket: WebSocket): void => {
  socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
}

t.test('messages go both ways, whole and in parts, and either side closes with a code', async (t) => {
  const sockets = new TestSockets()
  const seen: unknown[] = []
  const url = await peer(t, (socket, { url, headers }) => {
    seen.push(url, headers['x-own'], headers['x-carpool-hops'], headers['user-agent'], headers['sec-websocket-extensions'])
    socket.on('close', (code, reason) => seen.push(code, reason.toString()))
    echo(socket)
  })
  const headers = [
    ['x-own', 'mine'],
    ['X-Carpool-Hops', 'forged'],
    ['Sec-WebSocket-Extensions', 'permessage-deflate'],
    ['connection', 'close'],
  ]
  const socket = open(sockets, url, { protocols: ['a', 'b'], headers }, { carpoolHeaders: [['x-carpool-hops', 'true']] })
  socket.say('early')
  t.match(await socket.untilConnected(), { remoteAddress: '127.0.0.1', protocol: 'b', extensions: '' })
  socket.say(Buffer.of(1, 2))
  socket.say('')
  socket.say('in ', true)
  socket.say('parts ', true)
  socket.say('ä')
  await socket.until(({ messages }) => messages.length === 4)
  t.same(socket.messages, ['early', Buffer.of(1, 2), '', 'in parts ä'])
  socket.close({ code: 3001, reason: 'done' })
  t.match(await socket.untilClosed(), { ok: true, bytesOut: 18, bytesIn: 18 })
  t.same(socket.closing, { code: 3001, reason: 'done' })
  t.same(seen, ['/path?query', 'mine', 'true', 'carpool', undefined, 3001, 'done'])

  const closing = await peer(t, (peer) => {
    peer.send('bye')
    peer.close(4000, 'why')
  })
  const second = open(sockets, closing)
  t.match(await second.untilClosed(), { ok: true })
  t.same([second.messages, second.closing], [['bye'], { code: 4000, reason: 'why' }])
  t.ok(sockets.isClean)
})

t.test('a function that reads slowly gets all messages that came before the connection broke off', async (t) => {
  const sockets = new TestSockets()
  const url = await peer(t, (peer) => {
    for (let message = 0; message < 5; message++) {
      peer.send(Buffer.alloc(60 * KB, String(message)), () => message === 4 && peer.terminate())
    }
  })
  const socket = open(sockets, url)
  socket.takes = false
  await socket.until(({ messages }) => messages.length === 4)
  while (sockets.outside.sockets > 0) await new Promise(setImmediate)
  t.equal(socket.closed, undefined)
  socket.takes = true
  socket.credit(64 * KB)
  t.match(await socket.untilClosed(), { ok: false, bytesIn: 300 * KB })
  t.same(
    socket.messages.map((message) => message.slice(0, 1).toString()),
    ['0', '1', '2', '3', '4'],
  )
  t.ok(sockets.isClean)
})

t.test('a megabyte in one message comes in parts, as the function takes them', async (t) => {
  const sockets = new TestSockets()
  const url = await peer(t, (socket) => {
    socket.send(Buffer.alloc(1024 * KB, 'x'))
    for (let message = 0; message < 50_000; message++) socket.send('')
    socket.close()
  })
  const socket = open(sockets, url)
  socket.takes = false
  await socket.until(({ received }) => received.length >= 192 * KB)
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  t.ok(socket.received.length <= 256 * KB)
  t.equal(socket.messages.length, 0)
  socket.takes = true
  socket.credit(socket.received.length)
  t.match(await socket.untilClosed(), { ok: true, bytesIn: 1024 * KB })
  t.equal(socket.messages.length, 50_001)
  t.same(socket.closing, { code: 1005, reason: '' })
  t.ok(sockets.isClean)
})

t.test('a peer that does not read fills the window', async (t) => {
  const sockets = new TestSockets()
  const url = await peer(t, (socket) => socket.pause())
  const socket = open(sockets, url)
  await socket.untilConnected()
  while (socket.closed === undefined) {
    socket.say(Buffer.alloc(64 * KB))
    await new Promise(setImmediate)
  }
  t.match(socket.closed, { ok: false, code: 'EPROTO', message: /than there was room for/ })
  t.ok(sockets.isClean)
})

t.test('messages that are too large, or never whole, end it', async (t) => {
  const url = await peer(t, (socket) => socket.send(Buffer.alloc(2_000)))
  const small = new TestSockets({ limits: { maxRequestBytes: 1_000 } })
  t.match(await open(small, url).untilClosed(), { ok: false, code: 'EPROTO', message: /WS_ERR_UNSUPPORTED_MESSAGE_LENGTH/ })
  const endless = await peer(t, (socket) => {
    const goOn = (): void => socket.send(Buffer.alloc(64 * KB), { fin: false }, (error) => (error == null ? goOn() : undefined))
    goOn()
  })
  const poor = new TestSockets({ limits: { maxMemoryBytes: 3_000_000 } })
  // Its share is a third of that, and the limit of a message is ten times as much.
  t.match(await open(poor, endless).untilClosed(), { ok: false, code: 'ENOBUFS', message: /memory/ })
  t.ok(small.isClean && poor.isClean)
})

/** Answers the handshake with `answer`. */
async function rawPeer(t: Test, answer: (socket: Socket, accept: string) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    t.teardown(() => socket.destroy())
    socket
      .on('error', () => {})
      .once('data', (request) => {
        const key = /sec-websocket-key: (\S+)/i.exec(request.toString())?.[1] ?? ''
        const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
        answer(
          socket,
          `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n`,
        )
      })
  })
  return `ws://127.0.0.1:${await listen(t, server)}/`
}

t.test('peers that break the protocol', async (t) => {
  const sockets = new TestSockets({ limits: { totalTimeoutMs: 300 } })
  const end = async (answer: (socket: Socket, accept: string) => void) => open(sockets, await rawPeer(t, answer)).untilClosed()
  const refused = { ok: false, code: 'EPROTO', message: /did not accept the WebSocket\.$/ }
  t.match(await end((socket) => void socket.write('HTTP/1.1 403 No\r\ncontent-length: 5\r\n\r\n')), refused)
  t.match(
    await end((socket) => void socket.write('HTTP/1.1 302 There\r\nlocation: http://10.0.0.1/\r\n\r\n')),
    refused,
    'no redirects',
  )
  t.match(await end((socket, accept) => void socket.write(accept.replace(/accept: \S+/, 'accept: x') + '\r\n')), refused)
  t.match(await end((socket, accept) => void socket.write(`${accept}sec-websocket-protocol: unasked\r\n\r\n`)), refused)
  t.match(
    await end((socket, accept) => void socket.write(`${accept}sec-websocket-extensions: permessage-deflate\r\n\r\n`)),
    refused,
  )
  t.match(await end((socket) => void socket.write('SSH-2.0\r\n\r\n')), { ok: false, code: 'EPROTO' })
  t.match(await end((socket) => void socket.write(`HTTP/1.1 101 X\r\nx: ${'x'.repeat(100_000)}`)), { ok: false, code: 'EPROTO' })
  t.match(await end(() => {}), { ok: false, code: 'ETIMEDOUT' })
  t.match(await end((socket) => void socket.end()), { ok: false, code: 'ECONNRESET' })
  t.match(await end((socket, accept) => void socket.write(`${accept}\r\n`, () => socket.resetAndDestroy())), {
    ok: false,
    code: 'ECONNRESET',
  })
  t.match(await end((socket, accept) => void socket.end(`${accept}\r\n`)), { ok: false, code: 'ECONNRESET' }, 'no close frame')
  const frame = (...bytes: number[]) =>
    end((socket, accept) => void socket.write(Buffer.concat([Buffer.from(`${accept}\r\n`), Buffer.from(bytes)])))
  t.match(await frame(0x83, 0), { ok: false, code: 'EPROTO', message: /WS_ERR_INVALID_OPCODE/ })
  t.match(await frame(0x81, 1, 0xff), { ok: false, code: 'EPROTO', message: /WS_ERR_INVALID_UTF8/ })
  t.match(await frame(0x81, 0x80, 0, 0, 0, 0), { ok: false, code: 'EPROTO', message: /WS_ERR_UNEXPECTED_MASK/ })
  t.match(await frame(0x81, 127, 0, 0, 1, 0, 0, 0, 0, 0), {
    ok: false,
    code: 'EPROTO',
    message: /WS_ERR_UNSUPPORTED_MESSAGE_LENGTH/,
  })
  t.ok(sockets.isClean)
})

t.test('where to is checked as for every connection', async (t) => {
  const resolve = async () => [{ address: '10.0.0.1', family: 4 }]
  const sockets = new TestSockets({ resolve, allow: [] })
  for (const url of ['ws://10.0.0.1/', 'ws://inner.test/', 'http://127.0.0.1/', 'wss://[::1]/', 'ws://169.254.169.254/']) {
    t.match(await open(sockets, url).untilClosed(), { ok: false, code: 'EACCES', message: /is not open to functions/ }, url)
  }
  t.match(await open(sockets, 'wss://a.test/', {}, { hosts: ['a.test:80'] }).untilClosed(), {
    ok: false,
    code: 'EACCES',
    message: /not among/,
  })
  t.match(await open(sockets, 'ws://a.test/', {}, { hosts: ['a.test:80'] }).untilClosed(), {
    ok: false,
    code: 'EACCES',
    message: /not open/,
  })
  t.ok(sockets.isClean)
})

t.test('the connection that was checked is the one that is used, and the only one', async (t) => {
  const lookups: string[] = []
  const sockets = new TestSockets({
    resolve: async (name) => {
      lookups.push(name)
      return [{ address: '127.0.0.1', family: 4 }]
    },
  })
  const server = createServer()
  let connections = 0
  server.on('connection', () => (connections += 1))
  new WebSocketServer({ server }).on('connection', echo)
  const port = await listen(t, server)
  const socket = open(sockets, `ws://only-here.test:${port}/`)
  socket.say('ping')
  await socket.until(({ messages, closed }) => messages.length > 0 || closed !== undefined)
  t.same([socket.messages, lookups, connections], [['ping'], ['only-here.test'], 1])
  socket.stop()
  await socket.untilClosed()
})

t.test('WebSockets over TLS, whose certificate nobody vouches for', async (t) => {
  const sockets = new TestSockets()
  const server = createTlsServer(identity({ names: ['127.0.0.1'] }))
  new WebSocketServer({ server }).on('connection', () => t.fail('was reached'))
  const url = `wss://127.0.0.1:${await listen(t, server)}/`
  t.match(await open(sockets, url).untilClosed(), { ok: false, code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
})

t.test('one that is stopped ends at the peer, at every point', async (t) => {
  const sockets = new TestSockets()
  const closed: Promise<unknown>[] = []
  const url = await peer(t, (socket) => void closed.push(once(socket, 'close')))
  const connected = open(sockets, url)
  await connected.untilConnected()
  connected.stop()
  t.match(await connected.untilClosed(), { ok: true })
  await Promise.all(closed)
  const connecting = open(sockets, url)
  connecting.stop()
  t.match(await connecting.untilClosed(), { ok: true })
  const asked = Promise.withResolvers<Socket>()
  const silent = open(sockets, await rawPeer(t, asked.resolve))
  const left = once(await asked.promise, 'close')
  silent.stop()
  t.match(await silent.untilClosed(), { ok: true })
  await left
  t.ok(sockets.isClean)
})

t.test('whatever a host says of a close frame', async (t) => {
  const sockets = new TestSockets()
  const url = await peer(t, echo)
  for (const closing of [
    '',
    '{',
    'null',
    '{"code":7}',
    '{"code":"x"}',
    JSON.stringify({ code: 1000, reason: 'x'.repeat(500) }),
  ]) {
    const socket = open(sockets, url)
    await socket.untilConnected()
    socket.close(closing)
    t.match(await socket.untilClosed(), { ok: true }, closing.slice(0, 20))
  }
  t.ok(sockets.isClean)
})

const PONG = Buffer.of(0x8a, 0)
const EMPTY = Buffer.of(0x82, 0)
const FRAGMENTS = Buffer.concat([Buffer.of(2, 0), Buffer.alloc(2 * 9_999), Buffer.of(0x80, 0)])
const BYE = Buffer.of(0x88, 2, 0x0f, 0xa0)

for (const [what, frames, messages] of [
  ['pongs', Buffer.alloc(2 * 100_000, PONG), 0],
  ['messages', Buffer.alloc(2 * 20_000, EMPTY), 20_000],
  ['fragments', Buffer.concat(Array.from({ length: 10 }, () => FRAGMENTS)), 10],
] as const) {
  t.test(`a flood of ${what} that are empty is decoded by turns, also what comes with the handshake`, async (t) => {
    const sockets = new TestSockets()
    const { reads } = sockets.outside
    const took = reads.took.bind(reads)
    let costs: number[] = []
    let most = 0
    reads.took = (holder, cost, reader) => {
      if (costs.length === 0) setImmediate(() => (costs = []))
      costs.push(cost)
      most = Math.max(
        most,
        costs.reduce((sum, one) => sum + one, 0),
      )
      return took(holder, cost, reader)
    }
    const url = await rawPeer(
      t,
      (socket, accept) => void socket.write(Buffer.concat([Buffer.from(`${accept}\r\n`), frames, BYE, PONG])),
    )
    const socket = open(sockets, url)
    t.match(await socket.untilClosed(), { ok: true })
    t.same([socket.messages.length, socket.closing], [messages, { code: 4000, reason: '' }])
    t.ok(most > 0 && most <= 2 * (2 * 1024 * KB + 64 * KB), `${most} in a turn`)
    t.ok(sockets.isClean)
  })
}

t.test('frames are cut wherever a read ends', (t) => {
  const long = (bytes: number): Buffer =>
    Buffer.concat([Buffer.of(0x82, 127, 0, 0, 0, 0, 0, 1, 0, bytes), Buffer.alloc(65_536 + bytes)])
  const all = [
    EMPTY,
    Buffer.of(0x81, 1, 7),
    Buffer.concat([Buffer.of(0x82, 126, 1, 0), Buffer.alloc(256, 0x82)]),
    long(3),
    PONG,
    BYE,
  ]
  const bytes = Buffer.concat(all)
  for (const step of [1, 2, 3, 5, 1000, bytes.length]) {
    const cutter = new FrameCutter(2)
    const ends: number[] = []
    let frames = 0
    let isRight = true
    for (let from = 0; from < bytes.length; from += step) {
      const read = bytes.subarray(from, from + step)
      for (let at = 0; at < read.length; ) {
        const cut = cutter.cut(read, at)
        isRight &&= cut.frames <= 2 && cut.end > at
        frames += cut.frames
        at = cut.end
        ends.push(from + at)
      }
    }
    t.ok(isRight)
    t.equal(frames, all.length, `in steps of ${step}`)
    if (step === bytes.length) {
      const sizes = all.map((frame) => frame.length)
      t.same(ends, [sizes[0]! + sizes[1]!, bytes.length - 4 - 2, bytes.length])
    }
  }
  t.end()
})
