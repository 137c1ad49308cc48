/** Bodies of fetches that stream, both ways, through the thread. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { createGzip, gzipSync, constants } from 'node:zlib'
import type { FetchedHead } from '@carpool/core'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../../../test/support/form.ts'
import { Egress, type EgressResult, type EgressStream } from '../src/index.ts'
import { listen, LOOPBACK, rawUpstream, requestOf, upstream, type Request } from './fixtures/upstream.ts'

const KB = 1024

/** A fetch as the relay sees it. */
class TestFetch {
  head: FetchedHead | undefined
  /** The first of it. */
  received = Buffer.alloc(0)
  receivedBytes = 0
  lastByte = -1
  parts = 0
  largestPart = 0
  isEnded = false
  isStopped = false
  creditBytes = 0
  settled: (EgressResult & { readonly message?: string }) | undefined
  takes = true
  readonly #stream: EgressStream
  readonly #waiting = new Set<() => void>()

  constructor(egress: Egress, url: string, request: Request) {
    this.#stream = egress.fetch(
      { ...requestOf(url, request), takesStream: true },
      (settled) => this.#tell(() => (this.settled = { ...(JSON.parse(settled.result) as object), ...settled })),
      {
        head: (text) => this.#tell(() => (this.head = JSON.parse(text) as FetchedHead)),
        data: ({ bytes, end }) =>
          this.#tell(() => {
            this.parts += 1
            this.largestPart = Math.max(this.largestPart, bytes.length)
            if (this.receivedBytes < 64 * KB) this.received = Buffer.concat([this.received, bytes])
            this.receivedBytes += bytes.length
            this.lastByte = bytes.at(-1) ?? this.lastByte
            this.isEnded ||= end === true
            if (this.takes) this.credit(bytes.length)
          }),
        credit: (bytes) => this.#tell(() => (this.creditBytes += bytes)),
        stopped: () => this.#tell(() => (this.isStopped = true)),
      },
    )
  }

  async until(isSo: (fetch: this) => boolean): Promise<void> {
    if (isSo(this)) return
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (isSo(this) && this.#waiting.delete(look)) resolve()
      }
      this.#waiting.add(look)
    })
  }

  async untilSettled(): Promise<EgressResult & { readonly message?: string }> {
    await this.until(({ settled }) => settled !== undefined)
    return this.settled!
  }

  send(bytes: string | Uint8Array, end?: true): void {
    this.#stream.send({ bytes: Uint8Array.from(typeof bytes === 'string' ? Buffer.from(bytes) : bytes), ...(end && { end }) })
  }

  credit(bytes: number): void {
    this.#stream.credit(bytes)
  }

  abort(side: 'sent' | 'received'): void {
    this.#stream.abort(side)
  }

  #tell(change: () => void): void {
    if (this.settled !== undefined) throw new Error('told after the end')
    change()
    this.#waiting.forEach((look) => look())
  }
}

type Begin = (url: string, request?: Request) => TestFetch

const common = new Egress({ allow: LOOPBACK })
t.teardown(() => common.close())

function fetching(egress = common): Begin {
  return (url, request = {}) => new TestFetch(egress, url, request)
}

const nothing = { received: Buffer.alloc(0), head: undefined, parts: 0 }

t.test('a response that is there by the next turn, or is announced to be small, comes in one piece', async (t) => {
  const origin = await upstream(t, ({ url }, response) => {
    if (url === '/at-once') response.end('at once')
    if (url === '/chunked') response.writeHead(200, { 'transfer-encoding': 'chunked' }).end('chunked')
    if (url === '/empty') response.writeHead(204).end()
    if (url === '/gzip') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('zipped'))
    if (url !== '/slow') return
    response.writeHead(200, { 'content-length': 8 }).write('slow')
    void setTimeout(20).then(() => response.end('slow'))
  })
  const begin = fetching()
  for (const [path, text] of Object.entries({
    'at-once': 'at once',
    'chunked': 'chunked',
    'empty': '',
    'gzip': 'zipped',
    'slow': 'slowslow',
  })) {
    const fetch = begin(`${origin}/${path}`)
    const { body, end } = await fetch.untilSettled()
    t.equal(Buffer.from(body).toString(), text, path)
    t.equal(end, 'ok')
    t.match(fetch, nothing, path)
  }
  const head = begin(`${origin}/at-once`, { method: 'HEAD' })
  t.match(await head.untilSettled(), { end: 'ok', body: { length: 0 } })
})

t.test('what comes later comes as it comes', async (t) => {
  let response: ServerResponse | undefined
  const origin = await upstream(t, (_request, answering) => {
    response = answering.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: 1\n\n')
  })
  const begin = fetching()
  const fetch = begin(`${origin}/events#part`)
  await fetch.until(({ received }) => received.length > 0)
  t.match(fetch.head, { ok: true, status: 200, url: `${origin}/events`, redirected: false })
  t.equal(fetch.received.toString(), 'data: 1\n\n')
  for (let event = 2; event <= 5; event++) {
    response?.write(`data: ${event}\n\n`)
    await fetch.until(({ received }) => received.toString().includes(`data: ${event}`))
  }
  t.equal(fetch.settled, undefined)
  response?.end()
  t.match(await fetch.untilSettled(), { end: 'ok', bytesIn: 45, body: { length: 0 } })
  t.ok(fetch.isEnded)
})

t.test('a large response is held back as far as the function does not take it', async (t) => {
  // Far more than sockets hold.
  const bytes = (IS_WHOLE ? 20 : 10) * 1024 * KB
  let left = 0
  const origin = await upstream(t, (request, response) => {
    const isZipped = request.url === '/gzip'
    response.writeHead(200, isZipped ? { 'content-encoding': 'gzip' } : { 'content-length': bytes })
    const sink = isZipped ? createGzip({ level: constants.Z_NO_COMPRESSION }) : response
    if (sink !== response) sink.pipe(response)
    left = bytes
    const pour = (): void => {
      while (left > 0) {
        const chunk = Buffer.alloc(Math.min(left, 64 * KB), (left / (64 * KB)) % 251)
        left -= chunk.length
        if (!sink.write(chunk)) return
      }
      sink.end()
    }
    sink.on('drain', pour)
    pour()
  })
  const begin = fetching()
  for (const path of ['/', '/gzip']) {
    const fetch = begin(`${origin}${path}`)
    fetch.takes = false
    await fetch.until(({ receivedBytes }) => receivedBytes > 192 * KB)
    await setTimeout(50)
    t.ok(fetch.receivedBytes <= 256 * KB, `${fetch.receivedBytes} bytes`)
    t.ok(left > 0, 'the upstream is held back')
    fetch.takes = true
    fetch.credit(fetch.receivedBytes)
    const { bytesIn } = await fetch.untilSettled()
    t.equal(fetch.receivedBytes, bytes)
    t.equal(fetch.lastByte, 1)
    t.ok(bytesIn >= bytes)
  }
})

t.test('a bomb is decompressed only as far as the function takes it', async (t) => {
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * KB))
  const origin = await upstream(t, (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
  const begin = fetching()
  const fetch = begin(origin)
  fetch.takes = false
  await fetch.until(({ receivedBytes }) => receivedBytes > 192 * KB)
  await setTimeout(50)
  t.ok(fetch.receivedBytes <= 256 * KB)
  fetch.abort('received')
  t.match(await fetch.untilSettled(), { end: 'aborted' })
})

t.test('a body that breaks off, and one that is broken off', async (t) => {
  const closed = Promise.withResolvers<void>()
  const origin = await upstream(t, ({ socket }, response) => {
    socket.on('close', closed.resolve)
    response.writeHead(200, { 'content-length': 1_000_000 }).write('some')
  })
  const begin = fetching()
  const broken = begin(`${origin}/`)
  await broken.until(({ received }) => received.length === 4)
  broken.abort('received')
  t.match(await broken.untilSettled(), { end: 'aborted', bytesIn: 4 })
  await closed.promise

  const reset = await upstream(t, (request, response) => {
    response.writeHead(200, { 'content-length': 1_000_000 }).write('some')
    request.on('data', () => request.socket.resetAndDestroy())
  })
  const fetch = begin(reset, { method: 'POST', streams: true })
  fetch.send('go')
  t.match(await fetch.untilSettled(), { end: 'failed', message: /closed the connection\.$/ })
})

/** Answers with what it was sent, and how. */
async function echo(t: Test, seen: IncomingMessage[] = []): Promise<string> {
  return upstream(t, (request, response) => {
    seen.push(request)
    request.pipe(response.writeHead(200, { 'x-length': request.headers['content-length'] ?? 'none' }))
  })
}

t.test('a request body streams, while its response does', async (t) => {
  const seen: IncomingMessage[] = []
  const origin = await echo(t, seen)
  const begin = fetching()
  const fetch = begin(origin, { method: 'POST', streams: true })
  fetch.send('first ')
  await fetch.until(({ received }) => received.toString() === 'first ')
  t.match(seen[0]?.headers, { 'transfer-encoding': 'chunked', 'content-length': undefined })
  fetch.send('second', true)
  t.match(await fetch.untilSettled(), { end: 'ok', bytesOut: 12, bytesIn: 12 })
  t.equal(fetch.received.toString(), 'first second')

  const known = begin(origin, { method: 'PUT', streams: true, headers: [['content-length', '5']] })
  known.send('12345', true)
  const { body } = await known.untilSettled()
  t.equal(Buffer.from(body).toString() + known.received.toString(), '12345')
  t.equal(seen[1]?.headers['content-length'], '5')
  const lying = begin(origin, { method: 'PUT', streams: true, headers: [['content-length', '5']] })
  lying.send('123', true)
  t.match(await lying.untilSettled(), {
    end: 'failed',
    message: 'The body of the request does not have the length that it announced.',
  })
  const empty = begin(origin, { method: 'POST', streams: true })
  empty.send('', true)
  t.match(await empty.untilSettled(), { end: 'ok', bytesOut: 0 })
})

t.test('a request body goes no faster than the upstream takes it', async (t) => {
  const arrived = Promise.withResolvers<IncomingMessage>()
  const origin = await upstream(t, (request, response) => {
    arrived.resolve(request)
    request.on('end', () => response.end('done'))
  })
  const begin = fetching()
  const fetch = begin(origin, { method: 'POST', streams: true })
  let sent = 0
  const sendOn = (): void => {
    while (sent - fetch.creditBytes + 64 * KB <= 256 * KB && sent < 50 * 1024 * KB) {
      fetch.send(Buffer.alloc(64 * KB))
      sent += 64 * KB
    }
  }
  sendOn()
  const request = await arrived.promise
  let before = -1
  while (before !== sent) {
    before = sent
    await setTimeout(30)
    sendOn()
  }
  t.ok(sent < 20 * 1024 * KB, `${sent} bytes are somewhere on their way`)
  request.resume()
  for (;;) {
    if (sent === 50 * 1024 * KB) break
    await fetch.until(({ creditBytes }) => sent - creditBytes + 64 * KB <= 256 * KB)
    sendOn()
  }
  fetch.send('', true)
  const { end, bytesOut, body } = await fetch.untilSettled()
  t.same([end, bytesOut, Buffer.from(body).toString()], ['ok', 50 * 1024 * KB, 'done'])
})

t.test('a redirect cannot be followed with a body that streams, but for one that drops it', async (t) => {
  const origin = await upstream(t, (request, response) => {
    const status = Number(request.url?.slice(1))
    if (status > 0) response.writeHead(status, { location: '/' }).end()
    else request.pipe(response)
  })
  const begin = fetching()
  for (const status of [301, 302, 307, 308]) {
    const fetch = begin(`${origin}/${status}`, { method: 'POST', streams: true })
    fetch.send('once', true)
    t.match(
      await fetch.untilSettled(),
      { end: 'refused', message: /a request body that streams cannot be sent again\.$/ },
      `${status}`,
    )
  }
  const fetch = begin(`${origin}/303`, { method: 'POST', streams: true })
  fetch.send('once', true)
  t.match(await fetch.untilSettled(), { end: 'ok', body: { length: 0 } })
})

t.test('an upstream that answers before it was sent everything says so', async (t) => {
  const origin = await upstream(t, (_request, response) => response.writeHead(413, { connection: 'close' }).end('too much'))
  const begin = fetching()
  const fetch = begin(origin, { method: 'POST', streams: true })
  fetch.send('x'.repeat(1000))
  const { end, body, result } = await fetch.untilSettled()
  t.equal(end, 'ok')
  t.match(JSON.parse(result), { status: 413 })
  t.equal(Buffer.from(body).toString() + fetch.received.toString(), 'too much')
})

t.test('a request body that the function breaks off, or that is more than there is room for', async (t) => {
  const server = createServer((request) => request.resume().on('error', () => {}))
  const port = await listen(t, server)
  const begin = fetching()
  const arrived = once(server, 'request') as Promise<[IncomingMessage]>
  const fetch = begin(`http://127.0.0.1:${port}/`, { method: 'POST', streams: true })
  fetch.send('some')
  const [request] = await arrived
  const left = new Promise((resolve) => request.on('close', resolve))
  fetch.abort('sent')
  t.match(await fetch.untilSettled(), { end: 'failed', message: 'The body of the request broke off.' })
  await left
  const flood = begin(`http://127.0.0.1:${port}/`, { method: 'POST', streams: true })
  for (let part = 0; part < 5; part++) flood.send(Buffer.alloc(64 * KB))
  t.match(await flood.untilSettled(), { end: 'failed', message: /than there was room for\.$/ })
  const get = begin(`http://127.0.0.1:${port}/`, { method: 'GET', streams: true })
  t.match(await get.untilSettled(), { end: 'refused', message: 'A GET request cannot have a body.' })
})

t.test('the time of a fetch is up to its head, and begins anew with each byte of a body that streams', async (t) => {
  const origin = await upstream(t, ({ url }, response) => {
    let left = 4
    response.writeHead(200).write('.')
    const drip = setInterval(() => {
      response.write('.')
      if (--left > 0) return
      clearInterval(drip)
      if (url === '/ends') response.end()
    }, 300)
  })
  const hasty = new Egress({ allow: LOOPBACK, limits: { totalTimeoutMs: 1_000 } })
  t.teardown(() => hasty.close())
  const begin = fetching(hasty)
  const [ends, stalls] = [begin(`${origin}/ends`), begin(`${origin}/stalls`)]
  t.match(await ends.untilSettled(), { end: 'ok', bytesIn: 5 })
  t.match(await stalls.untilSettled(), { end: 'failed', bytesIn: 5, message: /sent nothing for 1000 ms within the body/ })
})

/** Their frames are five times as long. */
const TOKENS = IS_WHOLE ? 400_000 : 250_000

t.test('tokens in chunks of their own are no framing without end', async (t) => {
  const origin = await upstream(t, (_request, response) => {
    response.writeHead(200)
    for (let token = 0; token < TOKENS; token++) response.write('t')
    response.end()
  })
  const fetch = fetching()(origin)
  t.match(await fetch.untilSettled(), { end: 'ok', bytesIn: TOKENS })
})

/** Two turns of the event loop, with a read's worth of them behind each: the first part is what came before it streamed. */
const MOST_PIECES = 2 * (4096 + 128)

for (const how of ['plain', 'gzip'] as const) {
  t.test(`chunks of a byte come by turns, however many are in one read: ${how}`, async (t) => {
    const plain = Buffer.alloc(100_000).map((_, index) => index % 251)
    // Stored and not compressed, so that the body is as long.
    const body = how === 'plain' ? plain : gzipSync(plain, { level: 0 })
    const chunks = Buffer.from([...body].flatMap((byte) => [0x31, 13, 10, byte, 13, 10]))
    const { origin } = await rawUpstream(t, (socket) => {
      const coding = how === 'gzip' ? 'content-encoding: gzip\r\n' : ''
      socket.write(`HTTP/1.1 200 OK\r\n${coding}transfer-encoding: chunked\r\n\r\n`)
      socket.write(Buffer.concat([chunks, Buffer.from('0\r\n\r\n')]))
    })
    const fetch = fetching()(origin)
    t.match(await fetch.untilSettled(), { end: 'ok', bytesIn: body.length })
    t.equal(fetch.receivedBytes, plain.length)
    t.ok(fetch.received.equals(plain.subarray(0, fetch.received.length)))
    if (how === 'plain') t.ok(fetch.largestPart <= MOST_PIECES, `${fetch.largestPart} bytes at once`)
  })
}
