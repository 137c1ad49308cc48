/** Bodies that stream through the gateway, both ways: within their windows, to a clear end, whatever the client does. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { streamingGateway } from './support/streaming-host.ts'

const KIB = 1024
const MIB = 1024 * KIB
const CHUNKED = 'POST /f/ HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n'
const GET = 'GET /f/ HTTP/1.1\r\nhost: x\r\n\r\n'

interface Client {
  readonly socket: Socket
  readonly text: () => string
  /** Resolves when what has come matches, or the connection has ended. */
  until(pattern: RegExp): Promise<string>
  untilClosed(): Promise<string>
}

async function clientOf(t: Test, port: number): Promise<Client> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1')
  t.teardown(() => socket.destroy())
  let text = ''
  const state = { isOver: false }
  let wake = (): void => {}
  const over = (): void => {
    state.isOver = true
    wake()
  }
  socket
    .on('error', () => {})
    .on('end', over)
    .on('close', over)
  socket.on('data', (chunk) => {
    text += String(chunk)
    wake()
  })
  await once(socket, 'connect')
  const moved = (): Promise<void> => new Promise((resolve) => (wake = resolve))
  return {
    socket,
    text: () => text,
    until: async (pattern) => {
      while (!pattern.test(text) && !state.isOver) await moved()
      return text
    },
    untilClosed: async () => {
      while (!state.isOver) await moved()
      return text
    },
  }
}

function chunk(bytes: string): string {
  return `${bytes.length.toString(16)}\r\n${bytes}\r\n`
}

t.test('a small body is whole before its call begins; a large one, and chunks that are not there at once, stream', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { maxBodyBytes: 65_536 })
  const client = await clientOf(t, port)
  client.socket.write(`POST /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: 65536\r\n\r\n${'x'.repeat(65_536)}`)
  const whole = await nextCall()
  t.match([whole.call.upload, whole.call.body.length], [undefined, 65_536])
  whole.end()
  client.socket.write(`${CHUNKED}${chunk('abc')}${chunk('def')}0\r\n\r\n`)
  const small = await nextCall()
  t.match([small.call.upload, Buffer.from(small.call.body).toString()], [undefined, 'abcdef'])
  small.end()
  client.socket.write(`POST /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: 65537\r\n\r\n`)
  const large = await nextCall()
  client.socket.write('y'.repeat(65_537))
  await large.until(() => large.uploadEnd !== undefined)
  t.match([large.uploadEnd, large.receivedBytes, large.call.upload?.takenBytes], ['ended', 65_537, 65_537])
  large.end()
  client.socket.write(`${CHUNKED}${chunk('abc')}`)
  const chunks = await nextCall()
  await chunks.until(() => chunks.receivedBytes === 3)
  t.equal(chunks.uploadEnd, undefined, 'it goes on')
  client.socket.write(`${chunk('de')}0\r\n\r\n`)
  await chunks.until(() => chunks.uploadEnd !== undefined)
  t.equal(Buffer.concat(chunks.received).toString(), 'abcde')
  chunks.end()
  await client.until(/(HTTP[^]*){4}/)
  t.equal(client.text().match(/HTTP\/1\.1 200/g)?.length, 4, 'all on one connection')
})

t.test('GET has no body, whatever comes with it', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { maxBodyBytes: MIB })
  const client = await clientOf(t, port)
  client.socket.write(`GET /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n${'x'.repeat(100_000)}`)
  const { call } = await nextCall()
  t.match([call.upload, call.body.length], [undefined, 0])
})

t.test('no more is read than the function takes, and a little', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  const total = 64 * MIB
  client.socket.write(`POST /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: ${total}\r\n\r\n`)
  let sent = 0
  let isStuck = false
  const piece = 'z'.repeat(256 * KIB)
  const send = (): void => {
    while (sent < total) {
      sent += piece.length
      isStuck = !client.socket.write(piece)
      if (isStuck) return void client.socket.once('drain', send)
    }
  }
  send()
  const hosted = await nextCall()
  await hosted.until(() => hosted.windowBytes === 0)
  t.equal(hosted.receivedBytes, 256 * KIB)
  // What the systems of both sides hold comes on top.
  let before = -1
  while (before !== client.socket.bytesWritten - client.socket.writableLength) {
    before = client.socket.bytesWritten - client.socket.writableLength
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.ok(isStuck, `the client has sent ${sent} bytes`)
  while (hosted.uploadEnd === undefined) {
    hosted.open(256 * KIB)
    await hosted.until(() => hosted.windowBytes === 0 || hosted.uploadEnd !== undefined)
  }
  t.match([hosted.receivedBytes, hosted.uploadEnd], [total, 'ended'])
})

t.test('tiny chunks are passed on together, and take little while they wait', async (t) => {
  const { port, nextCall } = await streamingGateway(t, {}, 0)
  const client = await clientOf(t, port)
  client.socket.write(CHUNKED)
  const hosted = await nextCall()
  for (let count = 0; count < 20; count++) client.socket.write(chunk('x').repeat(1000))
  client.socket.write('0\r\n\r\n')
  while (hosted.call.upload!.state !== 'ended') {
    hosted.open(MIB)
    await new Promise((resolve) => setImmediate(resolve))
    hosted.pull()
  }
  t.equal(hosted.receivedBytes, 20_000)
  t.ok(hosted.received.length < 500, `${hosted.received.length} pieces`)
})

t.test('bodies in tiny chunks take turns', async (t) => {
  const { port, app } = await streamingGateway(t)
  const served: Socket[] = []
  app.server.on('connection', (socket) => served.push(socket))
  const clients = await Promise.all(Array.from({ length: 16 }, () => clientOf(t, port)))
  const tiny = CHUNKED + chunk('x').repeat(10_000)
  while (served.length < clients.length) await new Promise((resolve) => setImmediate(resolve))
  for (const { socket } of clients) socket.write(tiny)
  let most = 0
  let before = served.map(() => 0)
  while (before.some((bytes) => bytes < tiny.length)) {
    await new Promise((resolve) => setImmediate(resolve))
    const now = served.map(({ bytesRead, readableLength }) => bytesRead - readableLength)
    most = Math.max(most, now.filter((bytes, index) => bytes - before[index]! > tiny.length / 2).length)
    before = now
  }
  t.ok(most <= 3, `${most} of them were parsed in one turn`)
})

t.test('of a body behind its answer nothing more is read, also if it waits for its turn', async (t) => {
  const { port, app, nextCall } = await streamingGateway(t)
  const served: Socket[] = []
  app.server.on('connection', (socket) => served.push(socket))
  const clients = await Promise.all(Array.from({ length: 8 }, () => clientOf(t, port)))
  for (const { socket } of clients) socket.write(CHUNKED + chunk('x').repeat(100_000))
  for (const _ of clients) (await nextCall()).end('ok', 'early')
  for (const text of await Promise.all(clients.map(({ untilClosed }) => untilClosed()))) t.match(text, /early/)
  for (const { bytesRead } of served) t.ok(bytesRead <= 128 * KIB, `${bytesRead} bytes were read`)
})

t.test('a client that asks first is told to go on when a host takes its call', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  client.socket.write(CHUNKED.replace('\r\n\r\n', '\r\nexpect: 100-continue\r\n\r\n'))
  const hosted = await nextCall()
  t.equal(await client.until(/100/), 'HTTP/1.1 100 Continue\r\n\r\n')
  client.socket.write(`${chunk('abc')}0\r\n\r\n`)
  await hosted.until(() => hosted.uploadEnd === 'ended')
  hosted.end('ok', 'fine')
  t.match(await client.until(/fine/), /200 OK/)
})

t.test('chunks that break later end the call, and the client learns why', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  for (const [more, why] of [
    ['xyz\r\n', /not valid HTTP/],
    ['-1\r\na\r\n', /not valid HTTP/],
    [undefined, /not valid HTTP|connection ended/],
  ] as const) {
    const client = await clientOf(t, port)
    client.socket.write(`${CHUNKED}${chunk('abc')}`)
    const hosted = await nextCall()
    await hosted.until(() => hosted.receivedBytes === 3)
    if (more === undefined) client.socket.end()
    else client.socket.write(more)
    await hosted.until(() => hosted.uploadEnd !== undefined && hosted.call.isCanceled)
    t.match(hosted.uploadEnd, why)
    t.match(await client.untilClosed(), /^HTTP\/1\.1 400 [^]*"code":"bad-request"/)
  }
})

t.test('a client that leaves within its body cancels', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  client.socket.write(`${CHUNKED}${chunk('abc')}`)
  const hosted = await nextCall()
  await hosted.until(() => hosted.receivedBytes === 3)
  client.socket.resetAndDestroy()
  await hosted.until(() => hosted.call.isCanceled)
  t.pass()
})

t.test('the time for a body runs only while the function wants more of it', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { bodyTimeoutMs: 300, bodyBytesPerSecond: 1_000_000 }, 3)
  const client = await clientOf(t, port)
  client.socket.write(`${CHUNKED}${chunk('abc')}`)
  const hosted = await nextCall()
  await hosted.until(() => hosted.receivedBytes === 3)
  await new Promise((resolve) => setTimeout(resolve, 700))
  t.equal(hosted.uploadEnd, undefined, 'it has the client wait')
  hosted.open(100)
  await hosted.until(() => hosted.uploadEnd !== undefined)
  t.match(hosted.uploadEnd, /3 bytes arrived; the limit is 300 ms/)
  t.match(await client.untilClosed(), /^HTTP\/1\.1 408 [^]*"code":"request-timeout"/)
})

t.test('of those whose bodies wait in memory, the one that waits longest is cut', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { maxBufferedBytes: 100 * KIB }, 0)
  const [first, second] = [await clientOf(t, port), await clientOf(t, port)]
  const head = `POST /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n`
  first.socket.write(head + 'x'.repeat(60 * KIB))
  const slow = await nextCall()
  second.socket.write(head + 'x'.repeat(60 * KIB))
  const other = await nextCall()
  t.match(await first.untilClosed(), /^HTTP\/1\.1 503 [^]*"code":"saturated"/)
  t.match([slow.call.isCanceled, other.call.isCanceled], [true, false])
})

t.test('an endless upload to a function that has answered ends with its connection, and the answer arrives', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  for (const way of ['whole', 'stream'] as const) {
    const client = await clientOf(t, port)
    client.socket.write(CHUNKED)
    const piece = chunk('x'.repeat(16 * KIB))
    const send = (): void => {
      while (client.socket.writable && client.socket.write(piece));
    }
    client.socket.on('drain', send)
    send()
    const hosted = await nextCall()
    if (way === 'stream') {
      hosted.begin()
      hosted.write('early')
    }
    hosted.end('ok', 'early')
    const text = await client.untilClosed()
    t.match(text, /^HTTP\/1\.1 200 [^]*early/, way)
    if (way === 'stream') t.match(text, /\r\n0\r\n\r\n$/)
    else t.match(text, /connection: close/)
  }
})

t.test('an answer streams as it comes, and its connection is used again', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  for (let round = 1; round <= 2; round++) {
    client.socket.write(GET)
    const hosted = await nextCall()
    hosted.begin([['content-type', 'text/event-stream']])
    await client.until(new RegExp(`(HTTP[^]*){${round}}\\r\\n\\r\\n$`))
    for (const event of ['one', 'two', 'three']) {
      hosted.write(`data: ${event}${round}\n\n`)
      await client.until(new RegExp(`${event}${round}`))
    }
    t.notMatch(client.text().slice(-10), /\r\n0\r\n\r\n/)
    hosted.end()
    await client.until(new RegExp(`three${round}[^]*\\r\\n0\\r\\n\\r\\n`))
  }
  t.match(client.text(), /transfer-encoding: chunked/i)
  t.match(client.text(), /server-timing: queue;dur=[\d.]+\r/)
  t.match(client.text(), /x-carpool-invocation: /)
})

t.test('a length that the function gives is kept to', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  client.socket.write(GET)
  const hosted = await nextCall()
  hosted.begin([['content-length', '6']])
  hosted.write('abc')
  await client.until(/abc/)
  hosted.write('def')
  client.socket.write(GET)
  const next = await nextCall()
  t.notMatch(client.text(), /abcdef/, 'the answer ends once it is on record')
  hosted.end()
  t.match(await client.until(/abcdef/), /content-length: 6\r[^]*\r\n\r\nabcdef$/)
  next.end('ok', 'next')
  t.match(await client.until(/next/), /abcdefHTTP\/1\.1 200/)
})

t.test('an answer that breaks off is no whole one for its client', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  for (const [request, headers] of [
    [GET, []],
    [GET, [['content-length', '10']]],
    [GET.replace('1.1', '1.0'), []],
  ] as const) {
    const client = await clientOf(t, port)
    const errors: string[] = []
    client.socket.on('error', ({ code }: NodeJS.ErrnoException) => errors.push(code ?? ''))
    client.socket.write(request)
    const hosted = await nextCall()
    hosted.begin(headers)
    hosted.write('abc')
    await client.until(/abc/)
    hosted.end('host-lost')
    const text = await client.untilClosed()
    t.notMatch(text, /\r\n0\r\n\r\n$/)
    if (request !== GET) t.same(errors, ['ECONNRESET'], 'over HTTP/1.0 only a reset tells')
  }
})

t.test('a stream that breaks off behind an answer that takes long ends the connection in its turn', async (t) => {
  for (const version of ['1.1', '1.0']) {
    const { port, nextCall } = await streamingGateway(t)
    const client = await clientOf(t, port)
    client.socket.write(GET + GET.replace('1.1', version) + (version === '1.1' ? GET : ''))
    const [slow, streamed] = [await nextCall(), await nextCall()]
    streamed.begin()
    streamed.write('abc')
    streamed.end('host-lost')
    if (version === '1.1') (await nextCall()).end('ok', 'third')
    slow.end('ok', 'slow')
    const text = await client.untilClosed()
    t.match(text, /^HTTP\/1\.1 200 [^]*slow/)
    t.notMatch(text, /third|\r\n0\r\n\r\n/)
  }
})

t.test('a stream that began with the end of the body before it is told that its client left', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { maxBodyBytes: 1_000_000 })
  const client = await clientOf(t, port)
  client.socket.write('POST /f/ HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 6\r\n\r\n')
  // The server waits for the first body.
  await client.until(/100 Continue/)
  client.socket.write('abcdefPOST /f/ HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\nabc')
  // A stream begins at once.
  const [second, first] = [await nextCall(), await nextCall()]
  first.end('ok', 'first')
  client.socket.end()
  await second.until(() => second.uploadEnd !== undefined)
  t.match(second.uploadEnd, /ended before|not valid/)
})

t.test('a slow reader is sent no more than it takes, and credits no more', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { answerTimeoutMs: 500 })
  const client = await clientOf(t, port)
  client.socket.pause()
  client.socket.write(GET)
  const hosted = await nextCall()
  hosted.begin()
  let sent = 0
  while (!hosted.call.isCanceled) {
    while (sent - hosted.credited <= 192 * KIB) {
      sent += 64 * KIB
      hosted.write(Buffer.alloc(64 * KIB, 'x'))
    }
    const before = hosted.credited
    await hosted.until(() => hosted.credited > before || hosted.call.isCanceled)
  }
  t.ok(sent - hosted.credited <= 256 * KIB)
  t.ok(sent < 20 * MIB, `the system took ${sent} bytes`)
})

t.test('a stream that waits behind an answer that takes long is not cut', async (t) => {
  const { port, nextCall } = await streamingGateway(t, { answerTimeoutMs: 200 })
  const client = await clientOf(t, port)
  client.socket.write(GET.repeat(2))
  const [slow, streamed] = [await nextCall(), await nextCall()]
  streamed.begin()
  streamed.write('streamed')
  // This one is cut once the other has waited for longer.
  const stalled = await clientOf(t, port)
  stalled.socket.pause()
  stalled.socket.write(GET)
  const unread = await nextCall()
  unread.begin()
  while (!unread.call.isCanceled) {
    unread.write(Buffer.alloc(64 * KIB, 'x'))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  slow.end('ok', 'slow')
  await client.until(/slow/)
  await client.until(/streamed/)
  streamed.write('and more')
  streamed.end()
  await client.until(/and more/)
})

t.test('a client that leaves an answer that streams cancels its call', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  for (const phase of ['head', 'body'] as const) {
    const client = await clientOf(t, port)
    client.socket.write(GET)
    const hosted = await nextCall()
    hosted.begin()
    if (phase === 'body') hosted.write('abc')
    await client.until(phase === 'body' ? /abc/ : /\r\n\r\n/)
    client.socket.destroy()
    await hosted.until(() => hosted.call.isCanceled)
    hosted.write('nobody reads this')
    hosted.end()
  }
  t.pass()
})

t.test('a client that has nothing more to send before its answer begins gets all of it', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  client.socket.end(GET)
  const hosted = await nextCall()
  await client.until(/100 Continue/)
  hosted.begin()
  hosted.write('abc')
  await client.until(/abc/)
  hosted.write('def')
  hosted.end()
  t.match(await client.untilClosed(), /abc\r\n3\r\ndef\r\n0\r\n\r\n$/)
})

t.test('an answer that streams comes behind those of the requests before', async (t) => {
  const { port, nextCall } = await streamingGateway(t)
  const client = await clientOf(t, port)
  client.socket.write(GET + GET)
  const [first, second] = [await nextCall(), await nextCall()]
  second.begin()
  second.write('second')
  second.end()
  first.begin()
  first.write('first')
  first.end()
  t.match(await client.until(/second\r\n0/), /^HTTP\/1\.1 200 [^]*first\r\n0\r\n\r\nHTTP\/1\.1 200 [^]*second\r\n0/)
})
