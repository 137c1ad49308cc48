/** Bodies that a function passes on as they are: from its client, from a fetch, and into one. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, createServer, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createGzip } from 'node:zlib'
import type { InvocationRecord } from '@carpool/core'
import t, { type Test } from 'tap'
import { IS_WHOLE } from '../support/form.ts'
import { startServer, until, type TestServer } from '../support/server.ts'

const MIB = 1024 * 1024
const TOTAL = (IS_WHOLE ? 20 : 8) * MIB
/** No two of its kilobytes are the same. */
const BODY = Buffer.alloc(TOTAL)
for (let at = 0; at < TOTAL; at += 4) BODY.writeUInt32LE(Math.imul(at, 2654435761) >>> 0, at)

const PIECE = BODY.subarray(0, 64 * 1024)

const FUNCTION = `
  export default {
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url)
      const from = searchParams.get('from')
      switch (pathname) {
        case '/pass': return new Response(request.body)
        case '/fetch': return new Response((await fetch(from)).body)
        case '/into': return fetch(from, { method: 'POST', body: request.body, duplex: 'half' })
        case '/from-one-to-the-next': {
          const { body } = await fetch(from)
          return fetch(searchParams.get('to'), { method: 'POST', body, duplex: 'half' })
        }
        case '/tee': {
          const [one, two] = request.body.tee()
          let bytes = 0
          for await (const part of two) bytes += part.length
          return new Response(one, { headers: { 'x-bytes': String(bytes) } })
        }
      }
      return new Response('fine')
    },
  }`

interface Upstream {
  readonly url: string
  /** What it has written of endless answers, in bytes. */
  written: number
  /** The connections of endless answers that were closed. */
  closed: number
}

async function startUpstream(t: Test): Promise<Upstream> {
  const server = createServer((request, response) => {
    switch (request.url) {
      case '/body':
        return response.end(BODY)
      case '/gzip': {
        const gzip = createGzip({ level: 1 })
        gzip.pipe(response.writeHead(200, { 'content-encoding': 'gzip' }))
        return gzip.end(BODY)
      }
      case '/echo':
        return request.pipe(response)
      case '/stops-reading':
        return request.once('data', () => request.socket.destroy())
      case '/breaks':
        response.writeHead(200, { 'content-length': TOTAL })
        return response.write(BODY.subarray(0, MIB), () => response.destroy())
      case '/stalls':
        return response.write(BODY.subarray(0, MIB))
    }
    const writeOn = (): void => {
      for (let hasRoom = true; hasRoom && !response.destroyed; upstream.written += PIECE.length) hasRoom = response.write(PIECE)
    }
    response.on('drain', writeOn).once('close', () => upstream.closed++)
    writeOn()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const upstream: Upstream = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, written: 0, closed: 0 }
  return upstream
}

function ask(server: TestServer, path: string, query: Record<string, string> = {}, method = 'GET'): ClientRequest {
  const request = httpRequest(`${server.url}/${path}?${new URLSearchParams(query).toString()}`, { method, agent: new Agent() })
  return request.on('error', () => {})
}

async function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  return response
}

async function digestOf(response: IncomingMessage): Promise<{ bytes: number; digest: string }> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    hash.update(part)
  }
  return { bytes, digest: hash.digest('hex') }
}

const WHOLE = { bytes: TOTAL, digest: createHash('sha256').update(BODY).digest('hex') }

async function recordOf(server: TestServer, { headers }: IncomingMessage, name = 'passes'): Promise<InvocationRecord> {
  return until(async () => {
    await server.recorded()
    const records = await server.json<InvocationRecord[]>('invocations', name)
    return records.find(({ id }) => id === headers['x-carpool-invocation'])
  })
}

/** What has come by fetches of a function, on its records and behind its answers, in bytes. */
async function fetchedBytes(server: TestServer, name: string): Promise<number> {
  const { rows } = await server.json<{ rows: Array<{ key: string; egressBytesIn: number }> }>('usage')
  return rows.find(({ key }) => key === name)?.egressBytesIn ?? 0
}

function peakBytes(pid: number): number {
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

t.test('bodies that are passed on', async (t) => {
  const server = await startServer(t, ['--allow-egress', '127.0.0.0/8', '--max-body-bytes', '1000000'])
  const upstream = await startUpstream(t)
  const limits = '"timeoutMs": 60000, "cpuMs": 20000, "memoryMb": 64'
  await server.deploy('passes', { 'index.js': FUNCTION, 'carpool.config.json': `{${limits}}` })
  await server.deploy('hurried', { 'index.js': FUNCTION, 'carpool.config.json': `{${limits}, "idleMs": 1000}` })
  const from = `${upstream.url}/body`
  const echo = `${upstream.url}/echo`

  await t.test('every byte comes through, and is counted once', async (t) => {
    for (const [path, query, sent, bytes] of [
      ['/pass', {}, true, [0, 0]],
      ['/fetch', { from }, false, [0, TOTAL]],
      ['/fetch', { from: `${upstream.url}/gzip` }, false, undefined],
      ['/into', { from: echo }, true, [TOTAL, TOTAL]],
      ['/from-one-to-the-next', { from, to: echo }, false, [TOTAL, 2 * TOTAL]],
    ] as const) {
      const request = ask(server, `passes${path}`, query, sent ? 'POST' : 'GET')
      request.end(sent ? BODY : undefined)
      const response = await answerOf(request)
      t.same(await digestOf(response), WHOLE, path)
      const record = await recordOf(server, response)
      t.match(record, { outcome: 'ok', status: 200, bytesIn: sent ? TOTAL : 0, bytesOut: TOTAL }, path)
      if (bytes !== undefined) t.same([record.egressBytesOut, record.egressBytesIn], bytes, path)
      t.ok(record.openUs > 0)
    }
  })

  await t.test('a body that is read on its way goes through the function', async (t) => {
    const part = BODY.subarray(0, 200_000)
    const request = ask(server, 'passes/tee', {}, 'POST')
    request.end(part)
    const response = await answerOf(request)
    t.equal(response.headers['x-bytes'], '200000')
    t.same(await digestOf(response), { bytes: 200_000, digest: createHash('sha256').update(part).digest('hex') })
  })

  await t.test('who reads slowly has the upstream wait, and memory is bounded', async (t) => {
    const pids = (await server.status()).hosts.map(({ pid }) => pid)
    const before = pids.map(peakBytes)
    const request = ask(server, 'passes/fetch', { from: `${upstream.url}/endless` })
    request.end()
    const response = await answerOf(request)
    response.pause()
    await until(async () => {
      const { written } = upstream
      for (let count = 0; count < 5; count++) await (await server.get('/passes/')).text()
      return upstream.written > 0 && upstream.written === written
    })
    t.ok(upstream.written < 40 * MIB, `${upstream.written} bytes are under way, in the buffers of three connections`)
    for (const [index, pid] of pids.entries()) t.ok(peakBytes(pid) - before[index]! < 20 * MIB)
    const { closed } = upstream
    request.destroy()
    await until(async () => upstream.closed > closed)
    t.match(await recordOf(server, response), { outcome: 'canceled', status: 200 })
  })

  await t.test('what a client that leaves has had of a fetch is counted once', async (t) => {
    await server.deploy('left', FUNCTION)
    const { written } = upstream
    const request = ask(server, 'left/fetch', { from: `${upstream.url}/endless` })
    request.end()
    const response = await answerOf(request)
    let got = 0
    response.on('data', (part: Buffer) => (got += part.length)).on('error', () => {})
    await until(async () => got > 1.5 * TOTAL)
    request.destroy()
    t.match(await recordOf(server, response, 'left'), { outcome: 'canceled' })
    const counted = await until(async () => {
      const now = await fetchedBytes(server, 'left')
      return now >= got && now
    })
    t.ok(counted <= upstream.written - written, `${counted} bytes of ${upstream.written - written}, and ${got} have come`)
  })

  await t.test('an upstream that breaks off, or stands still, breaks the answer off', async (t) => {
    for (const [name, path, outcome] of [
      ['passes', 'breaks', 'exception'],
      ['hurried', 'stalls', 'timeout'],
    ] as const) {
      const request = ask(server, `${name}/fetch`, { from: `${upstream.url}/${path}` })
      request.end()
      const response = await answerOf(request)
      await t.rejects(digestOf(response), path)
      t.match(await recordOf(server, response, name), { outcome, status: 200 }, path)
    }
    const request = ask(server, 'passes/into', { from: `${upstream.url}/stops-reading` }, 'POST')
    request.end(BODY)
    t.equal((await answerOf(request)).statusCode, 500)
  })

  await t.test('a client that breaks off leaves the upstream', async (t) => {
    const request = ask(server, 'passes/into', { from: echo }, 'POST')
    request.write(BODY.subarray(0, MIB))
    const response = await answerOf(request)
    await once(response, 'data')
    request.destroy()
    t.match(await recordOf(server, response), { outcome: 'canceled' })
    await until(async () => (await server.status()).inFlight === 0)
  })

  await t.test('an answer to HEAD has nothing passed on', async (t) => {
    const { closed } = upstream
    const request = ask(server, 'passes/fetch', { from: `${upstream.url}/endless` }, 'HEAD')
    request.end()
    t.same((await digestOf(await answerOf(request))).bytes, 0)
    await until(async () => upstream.closed > closed)
  })

  await t.test('a host that is lost breaks off what went past it', async (t) => {
    const { closed } = upstream
    const request = ask(server, 'passes/fetch', { from: `${upstream.url}/endless` })
    request.end()
    const response = await answerOf(request)
    const [host] = (await server.status()).hosts
    process.kill(host!.pid, 'SIGKILL')
    await t.rejects(digestOf(response))
    t.match(await recordOf(server, response), { outcome: 'host-lost', status: 200 })
    await until(async () => upstream.closed > closed)
  })
})
