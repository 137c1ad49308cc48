/** Bodies that stream through the whole of it, both ways, whatever client and function do. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { InvocationRecord } from '@carpool/core'
import t, { type Test } from 'tap'
import { startServer, until, type TestServer } from '../support/server.ts'

const MIB = 1024 * 1024
const TOTAL = 50 * MIB
const PIECE = Buffer.alloc(MIB, 'p')

const FUNCTION = `
  const waits = new Map()
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  const encoder = new TextEncoder()
  const said = (name) => ({
    async pull(controller) { await new Promise(() => {}) },
    cancel(reason) { console.log(name + ' canceled') },
  })
  export default {
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      switch (pathname) {
        case '/echo': return new Response(request.body)
        case '/length': {
          let bytes = 0
          for await (const part of request.body) bytes += part.length
          return new Response(String(bytes))
        }
        case '/text': return new Response(String((await request.text()).length))
        case '/early': return new Response('early')
        case '/caught':
          console.log('it reads')
          try { await request.text() } catch (error) { console.log('caught ' + error.message); throw error }
          return new Response('whole')
        case '/unread':
          request.signal.addEventListener('abort', () => console.log('unread aborted'))
          console.log('unread begins')
          await new Promise(() => {})
        case '/events': {
          let count = 0
          return new Response(new ReadableStream({
            async pull(controller) {
              if (count === 3) return controller.close()
              await new Promise((resolve) => waits.set(String(count), resolve))
              controller.enqueue(encoder.encode('data: ' + count++ + '\\n\\n'))
            },
          }), { headers: { 'content-type': 'text/event-stream' } })
        }
        case '/go': {
          const at = searchParams.get('event')
          while (!waits.has(at)) await sleep(5)
          waits.get(at)()
          waits.delete(at)
          return new Response('went')
        }
        case '/endless': return new Response(new ReadableStream({
          pull(controller) { controller.enqueue(new Uint8Array(65536)) },
          cancel() { console.log('endless canceled') },
        }))
        case '/silent':
          request.signal.addEventListener('abort', () => console.log('silent aborted'))
          return new Response(new ReadableStream(said('silent')))
        case '/breaks': {
          let count = 0
          return new Response(new ReadableStream({
            async pull(controller) {
              await sleep(1)
              if (++count === 3) throw new Error('broken on purpose')
              controller.enqueue(encoder.encode('part'))
            },
          }))
        }
        case '/lies': return new Response(new ReadableStream({
          async pull(controller) { await sleep(1); controller.enqueue(encoder.encode('12')); await sleep(1); controller.close() },
        }), { headers: { 'content-length': searchParams.get('length') } })
        case '/slowly': return new Response(new ReadableStream({
          async pull(controller) { await sleep(1); controller.enqueue(encoder.encode('slow')); controller.close() },
        }))
      }
      return new Response('fine')
    },
  }`

async function recordsOf(server: TestServer): Promise<InvocationRecord[]> {
  await server.recorded()
  return server.json<InvocationRecord[]>('invocations', 'streams')
}

async function recordOf(server: TestServer, id: string | string[] | null | undefined): Promise<InvocationRecord> {
  return until(async () => (await recordsOf(server)).find((record) => record.id === id))
}

/** A request whose body the test writes. */
function post(server: TestServer, path: string, headers: Record<string, string> = {}, agent?: Agent): ClientRequest {
  const request = httpRequest(`${server.url}/streams${path}`, { method: 'POST', headers, agent: agent ?? new Agent() })
  request.on('error', () => {})
  return request
}

async function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of response.setEncoding('latin1')) text += String(part)
  return text
}

async function sendAll(request: ClientRequest, totalBytes: number): Promise<void> {
  for (let sent = 0; sent < totalBytes; sent += PIECE.length) if (!request.write(PIECE)) await once(request, 'drain')
  request.end()
}

async function rawClient(t: Test, server: TestServer): Promise<Socket & { text: () => string }> {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname).setEncoding('latin1')
  t.teardown(() => socket.destroy())
  let text = ''
  socket.on('error', () => {}).on('data', (part) => (text += String(part)))
  await once(socket, 'connect')
  return Object.assign(socket, { text: () => text })
}

function residentBytes(pid: number): number {
  const kib = Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  return kib * 1024
}

function checkGrowth(t: Test, pid: number, before: number, mostBytes: number): void {
  const growth = residentBytes(pid) - before
  t.ok(growth < mostBytes, `the host took ${growth} bytes more`)
}

t.test('streams', async (t) => {
  const server = await startServer(t, [
    '--max-body-bytes',
    '1000000',
    '--body-timeout-ms',
    '2000',
    '--answer-timeout-ms',
    '60000',
  ])
  await server.deploy('streams', {
    'index.js': FUNCTION,
    'carpool.config.json': '{"timeoutMs": 60000, "cpuMs": 20000, "memoryMb": 64}',
  })
  const hostPids = async (): Promise<number[]> => (await server.status()).hosts.map(({ pid }) => pid)

  await t.test('50 MB go through a function and back, in bounded memory', async (t) => {
    const echo = async (): Promise<{ response: IncomingMessage; bytes: number; digest: string }> => {
      const request = post(server, '/echo')
      const sent = sendAll(request, TOTAL)
      const response = await answerOf(request)
      const hash = createHash('sha256')
      let bytes = 0
      for await (const part of response as AsyncIterable<Buffer>) {
        bytes += part.length
        hash.update(part)
      }
      await sent
      return { response, bytes, digest: hash.digest('hex') }
    }
    await echo()
    await echo()
    const pids = await hostPids()
    const before = pids.map(residentBytes)
    const { response, bytes, digest } = await echo()
    const expected = createHash('sha256')
    for (let count = 0; count < TOTAL / MIB; count++) expected.update(PIECE)
    t.match([bytes, digest], [TOTAL, expected.digest('hex')])
    // The heap of an isolate is collected when it is due.
    for (const [index, pid] of pids.entries()) checkGrowth(t, pid, before[index]!, 40 * MIB)
    const record = await recordOf(server, response.headers['x-carpool-invocation'])
    t.match(record, { outcome: 'ok', status: 200, bytesIn: TOTAL, bytesOut: TOTAL })
  })

  await t.test('a function reads a large body part by part, and one that wants it whole is told of the limit', async (t) => {
    const length = post(server, '/length', { 'content-length': String(2 * MIB) })
    void sendAll(length, 2 * MIB)
    t.equal(await textOf(await answerOf(length)), String(2 * MIB))
    const text = post(server, '/text', { 'content-length': String(2 * MIB) })
    void sendAll(text, 2 * MIB)
    const response = await answerOf(text)
    t.equal(response.statusCode, 500)
    await textOf(response)
    await server.untilLogged('streams', /1000000/)
  })

  await t.test('events arrive one by one, and the record is written at the end', async (t) => {
    const response = await server.get('/streams/events')
    t.equal(response.headers.get('content-type'), 'text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (const event of ['0', '1', '2']) {
      await server.get(`/streams/go?event=${event}`)
      t.equal((await reader.read()).value, `data: ${event}\n\n`)
    }
    t.equal((await reader.read()).done, true)
    t.match(await recordOf(server, response.headers.get('x-carpool-invocation')), { outcome: 'ok', status: 200, bytesOut: 27 })
  })

  await t.test('a client that leaves cancels, in each phase', async (t) => {
    const upload = post(server, '/caught')
    upload.write('abc')
    // A call that has not begun would be canceled without the function.
    await server.untilLogged('streams', /it reads/)
    upload.destroy()
    await server.untilLogged('streams', /caught/)
    const unread = post(server, '/unread')
    // Where the function has the client wait, the connection is not read, so it would not be noticed.
    unread.write('abc')
    await server.untilLogged('streams', /unread begins/)
    unread.destroy()
    await server.untilLogged('streams', /unread aborted/)
    for (const path of ['silent', 'endless']) {
      const leaving = new AbortController()
      const response = await server.get(`/streams/${path}`, { signal: leaving.signal })
      leaving.abort()
      await server.untilLogged('streams', new RegExp(`${path} canceled`))
      t.match(await recordOf(server, response.headers.get('x-carpool-invocation')), { outcome: 'canceled', status: 200 })
    }
    await until(async () => (await server.status()).inFlight === 0)
  })

  await t.test('an endless upload to a function that has answered ends', async (t) => {
    const client = await rawClient(t, server)
    client.write('POST /streams/early HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n')
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const send = (): void => {
      while (client.writable && client.write(chunk));
    }
    client.on('drain', send)
    const closed = new Promise((resolve) => client.once('close', resolve))
    send()
    await closed
    t.match(client.text(), /^HTTP\/1\.1 200 OK[^]*early$/)
  })

  await t.test('chunks that are cut off, or are none, have a clear end', async (t) => {
    for (const rest of ['zz\r\n', '5\r\nab', undefined]) {
      const client = await rawClient(t, server)
      client.write('POST /streams/caught HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n')
      await until(async () => (await server.status()).inFlight > 0)
      if (rest === undefined) client.end()
      else client.end(rest)
      await once(client, 'close')
      // A client that has closed its side is probed while its call ends.
      t.match(client.text(), /^(HTTP\/1\.1 100 Continue\r\n\r\n)*HTTP\/1\.1 400 [^]*"code":"bad-request"/)
      await until(async () => (await server.status()).inFlight === 0)
    }
    t.match(
      (await recordsOf(server)).slice(0, 3).map(({ outcome }) => outcome),
      ['canceled', 'canceled', 'canceled'],
    )
  })

  await t.test('a stream that breaks off, or is not as long as it says, is no whole answer', async (t) => {
    for (const [path, outcome] of [
      ['/breaks', 'exception'],
      ['/lies?length=1', 'invalid-response'],
      ['/lies?length=3', 'invalid-response'],
    ] as const) {
      const response = await server.get(`/streams${path}`)
      await t.rejects(response.text(), path)
      t.match(await recordOf(server, response.headers.get('x-carpool-invocation')), { outcome, status: 200 }, path)
    }
    const exact = await server.get('/streams/lies?length=2')
    t.match([exact.headers.get('content-length'), await exact.text()], ['2', '12'])
  })

  await t.test('HEAD of a stream, and the next request on a connection behind one', async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const sockets: unknown[] = []
    for (const [method, path, body] of [
      ['GET', '/slowly', 'slow'],
      ['HEAD', '/endless', ''],
      ['GET', '/slowly', 'slow'],
      ['GET', '/', 'fine'],
    ] as const) {
      const request = httpRequest(`${server.url}/streams${path}`, { method, agent })
      request.end()
      const response = await answerOf(request)
      sockets.push(response.socket.localPort)
      t.match([response.statusCode, await textOf(response)], [200, body], `${method} ${path}`)
    }
    t.same([sockets[1], sockets[3]], [sockets[0], sockets[2]], 'this client keeps no connection behind a HEAD without a length')
  })

  await t.test('who reads a kilobyte a second holds up nobody, and is bounded', async (t) => {
    const pids = await hostPids()
    const before = pids.map(residentBytes)
    const client = await rawClient(t, server)
    client.write('GET /streams/endless HTTP/1.1\r\nhost: x\r\n\r\n')
    client.pause()
    const slow = setInterval(() => client.read(100), 100)
    t.teardown(() => clearInterval(slow))
    for (let count = 0; count < 50; count++) t.equal(await (await server.get('/streams/')).text(), 'fine')
    for (const [index, pid] of pids.entries()) checkGrowth(t, pid, before[index]!, 30 * MIB)
    client.destroy()
    await until(async () => (await server.status()).inFlight === 0)
  })

  await t.test('carpool invoke has a stream as a whole, within the limit', async (t) => {
    t.match(await server.carpool('invoke', 'streams', '--path', '/slowly'), { code: 0, stdout: /slow/ })
    t.match((await server.carpool('invoke', 'streams', '--path', '/endless')).stderr, /limit is 1000000/)
  })
})

/** Shared; the last test that it is in ends it. */
const server = await startServer(t, ['--grace-ms', '500'])

t.test('a new revision leaves the streams of the old one open', async (t) => {
  await server.deploy('streams', FUNCTION)
  const response = await server.get('/streams/events')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  await server.get('/streams/go?event=0')
  t.equal((await reader.read()).value, 'data: 0\n\n')
  await server.deploy('streams', 'export default () => new Response("new")')
  t.equal(await (await server.get('/streams/')).text(), 'new')
  const next = reader.read()
  const { done } = await Promise.race([
    next,
    new Promise<{ done: undefined }>((resolve) => setTimeout(() => resolve({ done: undefined }), 300)),
  ])
  t.equal(done, undefined, 'it is open')
  await reader.cancel()
  await next.catch(() => {})
})

t.test('a host that is lost breaks its streams off', async (t) => {
  await server.deploy('streams', FUNCTION)
  const response = await server.get('/streams/silent')
  const [host] = (await server.status()).hosts
  process.kill(host!.pid, 'SIGKILL')
  await t.rejects(response.text())
  t.match(await recordOf(server, response.headers.get('x-carpool-invocation')), { outcome: 'host-lost', status: 200 })
})

t.test('a server that ends serves open streams for its grace', async (t) => {
  const response = await server.get('/streams/silent')
  const ended = server.stop()
  await t.rejects(response.text())
  t.equal((await ended).code, 0)
})
