/** Raw sockets of functions, with real peers. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { listen } from './fixtures/upstream.ts'
import { TestSockets } from './fixtures/test-sockets.ts'

const KB = 1024

/** Serves each connection with `handler`. */
async function peer(t: Test, handler: (socket: Socket) => void): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    handler(socket)
  })
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  return { port: await listen(t, server), sockets }
}

const echo = (socket: Socket): void => void socket.pipe(socket)

t.test('bytes go both ways, either side may end first, and both ends close it', async (t) => {
  const sockets = new TestSockets()
  const { port } = await peer(t, (socket) => {
    socket.write('hello ')
    socket.on('data', (bytes) => socket.write(bytes)).on('end', () => socket.end(' bye'))
  })
  const socket = sockets.open({ port })
  t.match(await socket.untilConnected(), { remoteAddress: '127.0.0.1', remotePort: port, tls: undefined })
  socket.send('ping')
  await socket.untilText('ping')
  t.notOk(socket.isEnded)
  socket.send(' pong', true)
  t.same(await socket.untilClosed(), { ok: true, bytesOut: 9, bytesIn: 19 })
  t.equal(socket.received.toString(), 'hello ping pong bye')
  t.ok(socket.isEnded)

  const { port: ending } = await peer(t, (socket) => socket.end('first'))
  const second = sockets.open({ port: ending })
  await second.until(({ isEnded }) => isEnded)
  t.equal(second.closed, undefined, 'the function may still send')
  second.send('late', true)
  t.match(await second.untilClosed(), { ok: true, bytesOut: 4, bytesIn: 5 })
  t.ok(sockets.isClean)
})

t.test('what is sent before the connection is there is written when it is', async (t) => {
  const sockets = new TestSockets()
  const { port } = await peer(t, echo)
  const socket = sockets.open({ port })
  socket.send('early')
  socket.send(' bird', true)
  await socket.untilClosed()
  t.equal(socket.received.toString(), 'early bird')
})

t.test('a megabyte each way, in order', async (t) => {
  const sockets = new TestSockets()
  const { port } = await peer(t, echo)
  const socket = sockets.open({ port })
  const whole = Buffer.alloc(1024 * KB).map((_, index) => index % 251)
  for (let at = 0; at < whole.length; at += 64 * KB) {
    await socket.until(({ creditBytes, closed }) => closed !== undefined || at + 64 * KB - creditBytes <= 256 * KB)
    socket.send(whole.subarray(at, at + 64 * KB))
  }
  socket.send('', true)
  t.match(await socket.untilClosed(), { ok: true, bytesOut: whole.length, bytesIn: whole.length })
  t.ok(socket.received.equals(whole))
  t.ok(sockets.isClean)
})

t.test('a peer is read no further than the window goes', async (t) => {
  const sockets = new TestSockets()
  let written = 0
  const { port } = await peer(t, (socket) => {
    const flood = (): void => {
      while (socket.write(Buffer.alloc(64 * KB))) written += 64 * KB
    }
    socket.on('drain', flood)
    flood()
  })
  const socket = sockets.open({ port })
  socket.takes = false
  await socket.until(({ received }) => received.length >= 192 * KB)
  // It has all the time to pass on more: a second connection is served meanwhile.
  const { port: other } = await peer(t, (socket) => socket.end('done'))
  const neighbour = sockets.open({ port: other })
  neighbour.send('', true)
  await neighbour.untilClosed()
  t.ok(socket.received.length <= 256 * KB, `${socket.received.length} bytes`)
  t.ok(sockets.outside.memory.used <= 256 * KB)
  const before = socket.received.length
  socket.credit(64 * KB)
  await socket.until(({ received }) => received.length > before)
  socket.takes = true
  socket.credit(10 ** 9)
  await socket.until(({ received }) => received.length > 1024 * KB)
  socket.stop()
  t.match(await socket.untilClosed(), { ok: true })
  t.ok(sockets.isClean)
  t.ok(written > 0)
})

t.test('a function that reads slowly gets all that came before both ends closed it', async (t) => {
  const sockets = new TestSockets()
  const whole = Buffer.alloc(257 * KB).map((_, index) => index % 251)
  const { port } = await peer(t, (socket) => socket.end(whole))
  const socket = sockets.open({ port })
  socket.takes = false
  socket.send('', true)
  await socket.until(({ received }) => received.length >= 192 * KB)
  // The connection is gone on this side too, and only what the function takes is missing.
  while (sockets.outside.sockets > 0) await new Promise(setImmediate)
  t.ok(socket.received.length <= 256 * KB)
  t.equal(socket.closed, undefined)
  socket.takes = true
  socket.credit(64 * KB)
  t.match(await socket.untilClosed(), { ok: true, bytesIn: whole.length })
  t.ok(socket.isEnded)
  t.ok(socket.received.equals(whole))
  t.ok(sockets.isClean)

  const unread = sockets.open({ port })
  unread.takes = false
  unread.send('', true)
  await unread.until(({ received }) => received.length >= 192 * KB)
  while (sockets.outside.sockets > 0) await new Promise(setImmediate)
  unread.stop()
  t.match(await unread.untilClosed(), { ok: true })
  t.ok(sockets.isClean)

  const unwanted = sockets.open({ port })
  unwanted.takes = false
  unwanted.send('', true)
  await unwanted.until(({ received }) => received.length >= 192 * KB)
  while (sockets.outside.sockets > 0) await new Promise(setImmediate)
  unwanted.abort('received')
  t.match(await unwanted.untilClosed(), { ok: true })
  t.ok(sockets.isClean)
})

t.test('what was sent before an end leaves, though the function needs the socket no more', async (t) => {
  const sockets = new TestSockets()
  const came = Promise.withResolvers<number>()
  const { port, sockets: peers } = await peer(t, (socket) => {
    let bytes = 0
    socket
      .pause()
      .on('data', (chunk) => (bytes += chunk.length))
      .once('close', () => came.resolve(bytes))
      .end('a peer that ends first')
  })
  const socket = sockets.open({ port })
  await socket.until(({ isEnded }) => isEnded)
  let sentBytes = 0
  // Until neither the system nor the window takes more.
  for (let creditBytes = -1; socket.creditBytes > creditBytes; ) {
    creditBytes = socket.creditBytes
    for (; sentBytes - creditBytes <= 192 * KB; sentBytes += 64 * KB) socket.send(Buffer.alloc(64 * KB))
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
  }
  socket.send('', true)
  socket.stop()
  for (const one of peers) one.resume()
  t.equal(await came.promise, sentBytes)
  t.match(await socket.untilClosed(), { ok: true, bytesOut: sentBytes })
  t.ok(sockets.isClean)
})

t.test('a peer that does not read fills the window, and more than that ends the socket', async (t) => {
  const sockets = new TestSockets()
  const { port } = await peer(t, (socket) => socket.pause())
  const socket = sockets.open({ port })
  await socket.untilConnected()
  let sent = 0
  while (sent - socket.creditBytes + 64 * KB <= 256 * KB) {
    socket.send(Buffer.alloc(64 * KB))
    sent += 64 * KB
    await new Promise(setImmediate)
  }
  t.ok(sockets.outside.memory.used <= 256 * KB)
  t.equal(socket.closed, undefined)
  while (socket.closed === undefined) {
    socket.send(Buffer.alloc(64 * KB))
    await new Promise(setImmediate)
  }
  t.match(socket.closed, { ok: false, code: 'EPROTO', message: /than there was room for/ })
  t.ok(sockets.isClean)
})

t.test('small writes while the peer does not read are joined, and cost what they hold', async (t) => {
  const sockets = new TestSockets()
  const { port } = await peer(t, echo)
  const socket = sockets.open({ port })
  for (let byte = 0; byte < 20_000; byte++) socket.send('x')
  t.equal(sockets.outside.memory.used, 20_000)
  socket.send('', true)
  await socket.untilClosed()
  t.equal(socket.received.length, 20_000)
})

t.test('a socket that is stopped ends at the peer at once, also while it connects or waits', async (t) => {
  const sockets = new TestSockets({ limits: { maxConnections: 1 } })
  const { port, sockets: atPeer } = await peer(t, echo)
  const socket = sockets.open({ port })
  await socket.untilConnected()
  const waiting = sockets.open({ port })
  await new Promise(setImmediate)
  t.equal(sockets.outside.slots.waiting, 1)
  waiting.stop()
  t.match(await waiting.untilClosed(), { ok: true, bytesOut: 0, bytesIn: 0 })
  socket.stop()
  await socket.untilClosed()
  for (const left of atPeer) await once(left, 'close')
  const connecting = sockets.open({ port })
  connecting.stop()
  t.match(await connecting.untilClosed(), { ok: true })
  const hanging = new TestSockets({ resolve: () => new Promise(() => {}) })
  const unresolved = hanging.open({ host: 'slow.test', port })
  await new Promise(setImmediate)
  t.equal(hanging.outside.sockets, 1)
  unresolved.stop()
  t.match(await unresolved.untilClosed(), { ok: true })
  t.ok(hanging.isClean)
  t.ok(sockets.isClean)
})

t.test('a peer that resets is an error with its code, and a function that breaks off resets', async (t) => {
  const sockets = new TestSockets()
  const reset = Promise.withResolvers<string | undefined>()
  const { port } = await peer(t, (socket) => {
    socket.on('error', (error: NodeJS.ErrnoException) => reset.resolve(error.code)).resume()
    socket.write('up')
  })
  const socket = sockets.open({ port })
  await socket.untilText('up')
  socket.abort('sent')
  t.match(await socket.untilClosed(), { ok: true, bytesIn: 2 })
  t.equal(await reset.promise, 'ECONNRESET')

  const { port: resetting } = await peer(t, (socket) => socket.once('data', () => socket.resetAndDestroy()))
  const second = sockets.open({ port: resetting })
  second.send('x')
  t.match(await second.untilClosed(), { ok: false, code: 'ECONNRESET', message: `127.0.0.1:${resetting} closed the connection.` })
  t.ok(sockets.isClean)
})

t.test('what the function does not want any more is read and dropped', async (t) => {
  const sockets = new TestSockets()
  const { port } = await peer(t, (socket) => {
    socket.write(Buffer.alloc(2048 * KB), () => socket.end())
    socket.once('data', (bytes) => socket.destroy(bytes.length > 100 ? new Error('more than was said') : undefined))
  })
  const socket = sockets.open({ port })
  socket.takes = false
  await socket.until(({ received }) => received.length >= 192 * KB)
  socket.abort('received')
  t.equal(sockets.outside.memory.used, 0)
  socket.send('', true)
  t.match(await socket.untilClosed(), { ok: true, bytesIn: 2048 * KB })
  t.ok(sockets.isClean)
})

t.test('no connection, and why', async (t) => {
  const resolve = async (name: string) => {
    if (name === 'inner.test') return [{ address: '10.0.0.1', family: 4 }]
    if (name === 'mixed.test') return [{ address: '169.254.169.254', family: 4 }]
    throw Object.assign(new Error('secret of this machine'), { code: 'ENOTFOUND' })
  }
  const sockets = new TestSockets({ resolve, limits: { connectTimeoutMs: 100 } })
  const end = (target: object, request = {}) => sockets.open(target, request).untilClosed()
  const gone = createServer()
  const port = await listen(t, gone)
  gone.close()
  await once(gone, 'close')
  t.match(await end({ port }), { ok: false, code: 'ECONNREFUSED', message: `connect ECONNREFUSED 127.0.0.1:${port}` })
  t.match(await end({ host: 'nowhere.test', port: 5432 }), {
    ok: false,
    code: 'ENOTFOUND',
    message: /nowhere\.test:5432 is not known/,
  })
  for (const host of [
    'inner.test',
    'mixed.test',
    '10.0.0.1',
    '169.254.169.254',
    '[fd00::1]',
    '0x0a000001',
    '2130706433',
    '0.0.0.0',
  ]) {
    const closed = await new TestSockets({ resolve, allow: [] }).open({ host, port: 5432 }).untilClosed()
    t.match(closed, { ok: false, code: 'EACCES', message: /^The address of .+ is not open to functions\.$/ }, host)
  }
  t.match(await end({ host: '1.1.1.1', port: 25 }), { ok: false, code: 'EACCES', message: /^The port of 1\.1\.1\.1:25 / })
  const hosts = ['db.test:5432', '127.0.0.2']
  t.match(await end({ host: 'DB.test.', port: 5433 }, { hosts }), {
    ok: false,
    code: 'EACCES',
    message: /db\.test\.:5433 is not among/,
  })
  t.match(await end({ host: 'DB.test.', port: 5432 }, { hosts }), { ok: false, code: 'ENOTFOUND' }, 'the list has it')
  t.match(await end({ port: 5432 }, { hosts }), { ok: false, code: 'EACCES' })
  t.ok(sockets.isClean)
})

t.test('a name that gives another address at its next connection is checked again', async (t) => {
  const { port } = await peer(t, echo)
  const answers = ['127.0.0.1', '10.0.0.1']
  const sockets = new TestSockets({ resolve: async () => [{ address: answers.shift() ?? '', family: 4 }] })
  const first = sockets.open({ host: 'rebinding.test', port })
  t.equal((await first.untilConnected()).remoteAddress, '127.0.0.1')
  t.match(await sockets.open({ host: 'rebinding.test', port }).untilClosed(), { ok: false, code: 'EACCES' })
  first.stop()
  await first.untilClosed()
})

t.test('nothing that a host can say does harm', async (t) => {
  const sockets = new TestSockets()
  const targets = [
    '',
    'null',
    '5',
    '{}',
    '"x"',
    '[]',
    ...[
      { kind: 'udp' },
      { kind: 'websocket' },
      { kind: 'websocket', url: 'ftp://a', protocols: [], headers: [] },
      { kind: 'websocket', url: 'ws://user:secret@a', protocols: [], headers: [] },
      { kind: 'websocket', url: 'ws://a', protocols: ['a b'], headers: [] },
      { kind: 'websocket', url: 'ws://a', protocols: ['a', 'a'], headers: [] },
      { kind: 'websocket', url: 'ws://a', protocols: [], headers: {} },
      { kind: 'tcp', host: 5, port: 1 },
      { kind: 'tcp', host: 'a b', port: 1 },
      { kind: 'tcp', host: 'a/../b', port: 1 },
      { kind: 'tcp', host: 'user@b', port: 1 },
      { kind: 'tcp', host: 'a:1', port: 1 },
      { kind: 'tcp', host: '', port: 1 },
      { kind: 'tcp', host: 'x'.repeat(300), port: 1 },
      { kind: 'tcp', host: 'a', port: 0 },
      { kind: 'tcp', host: 'a', port: 1.5 },
      { kind: 'tcp', host: 'a', port: '1' },
      { kind: 'tcp', host: 'a', port: 1, timeoutMs: -1 },
      { kind: 'tcp', host: 'a', port: 1, tls: 5 },
      { kind: 'tcp', host: 'a', port: 1, tls: { serverName: 5, isVerified: true, alpn: [] } },
      { kind: 'tcp', host: 'a', port: 1, tls: { serverName: '', isVerified: 'no', alpn: [] } },
      { kind: 'tcp', host: 'a', port: 1, tls: { serverName: '', isVerified: true, alpn: [''] } },
      { kind: 'tcp', host: 'a', port: 1, tls: { serverName: '', isVerified: true, alpn: [], ca: 7 } },
    ].map((target) => JSON.stringify(target)),
    JSON.stringify({ kind: 'tcp', host: 'x'.repeat(300_000), port: 1 }),
  ]
  for (const target of targets) {
    const socket = sockets.open(target)
    t.match(await socket.untilClosed(), { ok: false, code: 'ERR_INVALID_ARG_VALUE', message: /\.$/ }, target.slice(0, 80))
  }
  const { port } = await peer(t, echo)
  const socket = sockets.open({ port })
  for (const bytes of [Number.NaN, -5, Number.POSITIVE_INFINITY, 10 ** 20]) socket.credit(bytes)
  socket.send('x', true)
  socket.send('behind the end', true)
  t.match(await socket.untilClosed(), { ok: true, bytesOut: 1 })
  socket.stop()
  socket.send('x')
  t.ok(sockets.isClean)
})
