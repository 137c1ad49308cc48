import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { fetcher, header, listen, text, upstream } from './fixtures/upstream.ts'

const CODERS = { gzip: gzipSync, 'x-gzip': gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }
const tooLarge = /^FAILED: The response of 127\.0\.0\.1:\d+ is larger than the limit of 1000 bytes\.$/

t.test('a compressed response comes decompressed, and its headers do not claim otherwise', async (t) => {
  const origin = await upstream(t, (request, response) => {
    const codings = decodeURIComponent(request.url?.slice(1) ?? '')
    const body = codings.split(', ').reduce<Buffer>((plain, coding) => {
      if (coding === 'raw') return deflateRawSync(plain)
      const coder = CODERS[coding as keyof typeof CODERS]
      return coder === undefined ? plain : coder(plain)
    }, Buffer.from('plain text'))
    response
      .writeHead(200, { 'content-encoding': codings.replace('raw', 'deflate') })
      .end(request.method === 'HEAD' ? undefined : body)
  })
  const fetch = fetcher(t)
  for (const codings of [...Object.keys(CODERS), 'raw', 'gzip, br', 'identity', 'deflate, gzip, zstd']) {
    const result = await fetch(`${origin}/${codings}`)
    t.equal(text(result), 'plain text', codings)
    if (codings !== 'identity' && result.ok)
      t.same([header(result.headers, 'content-encoding'), header(result.headers, 'content-length')], [[], []])
  }
  const unknown = await fetch(`${origin}/sdch`)
  t.equal(text(unknown), 'plain text')
  t.same(unknown.ok && header(unknown.headers, 'content-encoding'), ['sdch'])
  t.match(await fetch(`${origin}/gzip`, { method: 'HEAD' }), { ok: true, status: 200 })
  t.match(text(await fetch(`${origin}/${Array.from({ length: 6 }, () => 'gzip').join(', ')}`)), /cannot be decompressed/)
})

t.test('a response is limited as it is sent and as it is decompressed', async (t) => {
  const origin = await upstream(t, (request, response) => {
    const [, how, size] = request.url?.split('/') ?? []
    const body = Buffer.alloc(Number(size), 'x')
    if (how === 'announced') response.writeHead(200, { 'content-length': body.length }).end(body)
    else if (how === 'chunked') {
      response.write(body.subarray(0, 10))
      response.end(body.subarray(10))
    } else if (how === 'lying') response.writeHead(200, { 'content-encoding': 'gzip' }).end('not gzip at all')
    else if (how === 'cut') response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(body).subarray(0, -9))
    else response.writeHead(200, { 'content-encoding': how }).end(CODERS[how as keyof typeof CODERS](body))
  })
  const fetch = fetcher(t, { maxResponseBytes: 1000 })
  for (const how of ['announced', 'chunked', ...Object.keys(CODERS)]) {
    t.equal(text(await fetch(`${origin}/${how}/1000`)).length, 1000, how)
    t.match(text(await fetch(`${origin}/${how}/1001`)), tooLarge, how)
  }
  for (const how of ['gzip', 'deflate', 'br', 'zstd'])
    t.match(text(await fetch(`${origin}/${how}/500000`)), tooLarge, `bomb of ${how}`)
  t.match(text(await fetch(`${origin}/lying/0`)), /cannot be decompressed/)
  t.match(text(await fetch(`${origin}/cut/100`)), /cannot be decompressed/)
})

t.test('a request body is limited', async (t) => {
  const origin = await upstream(t, (request, response) => request.pipe(response))
  const fetch = fetcher(t, { maxRequestBytes: 1000 })
  const send = (bytes: number) => fetch(origin, { method: 'POST', body: Buffer.alloc(bytes, 'x') })
  t.equal(text(await send(1000)).length, 1000)
  t.equal(text(await send(1001)), 'FAILED: The request body has 1001 bytes; the limit is 1000.')
})

t.test('a server that does not answer, or never ends its answer, is given up', async (t) => {
  const origin = await upstream(t, (request, response) => {
    if (request.url === '/begun') response.write('begun')
    if (request.url === '/early') response.writeEarlyHints({ link: '</x>; rel=preload' })
    if (request.url === '/moved') response.writeHead(302, { location: '/' }).write('x')
  })
  const gone = /^FAILED: 127\.0\.0\.1:\d+ did not answer in time\.$/
  const patient = fetcher(t, { totalTimeoutMs: 60 })
  for (const path of ['silent', 'begun', 'early', 'moved']) t.match(text(await patient(`${origin}/${path}`)), gone, path)
})

t.test('an aborted fetch ends at once, and its connection with it', async (t) => {
  const arrived = Promise.withResolvers<import('node:net').Socket>()
  const origin = await upstream(t, (request, response) => {
    response.write('begun')
    arrived.resolve(request.socket)
  })
  const fetch = fetcher(t)
  const aborting = new AbortController()
  const result = fetch(origin, {}, aborting.signal)
  const socket = await arrived.promise
  const closed = new Promise((resolve) => socket.on('close', resolve))
  aborting.abort()
  t.same(await result, { ok: false, message: 'The fetch was aborted.' })
  await closed
  t.same(await fetch(origin, {}, aborting.signal), { ok: false, message: 'The fetch was aborted.' })
})

t.test('what goes wrong on the way is told without a word of this machine', async (t) => {
  const answers: Record<string, string> = {
    '/nothing': '',
    '/garbage': 'SSH-2.0-OpenSSH_9.2\r\n\r\n',
    '/short': 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort',
    '/headers': `HTTP/1.1 200 OK\r\n${'x-long: '.padEnd(40_000, 'x')}\r\n\r\n`,
    '/chunks': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    '/switching': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\n\r\n',
    '/upgraded': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n',
    '/smuggled': 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  }
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (data) => socket.end(answers[/^GET (\S+)/.exec(data.toString())?.[1] ?? ''] ?? ''))
  })
  const port = await listen(t, server)
  const fetch = fetcher(t)
  const expected: Record<string, RegExp> = {
    '/nothing': /closed the connection\.$/,
    '/garbage': /gave no valid HTTP response\.$/,
    '/short': /(?:closed the connection|does not have the length that it announced)\.$/,
    '/headers': /has too many headers\.$/,
    '/chunks': /gave no valid HTTP response\.$/,
    '/smuggled': /does not have the length that it announced\.$/,
    '/switching': /^The fetch of 127\.0\.0\.1:\d+ failed\.$/,
    '/upgraded': /closed the connection\.$/,
  }
  for (const [path, message] of Object.entries(expected)) {
    const result = await fetch(`http://127.0.0.1:${port}${path}`)
    t.match(result, { ok: false, message }, path)
    t.notMatch(text(result), /node|undici|UND_ERR|local/i)
  }
  server.close()
  await once(server, 'close')
  t.equal(text(await fetch(`http://127.0.0.1:${port}/`)), `FAILED: 127.0.0.1:${port} refused the connection.`)
})

const hasOpenssl = spawnSync('openssl', ['version']).status === 0

t.test(
  'a certificate that nobody vouches for is refused',
  { skip: hasOpenssl ? false : 'openssl is not installed' },
  async (t) => {
    const folder = t.testdir()
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1', '-subj', '/CN=localhost']
    execFileSync('openssl', ['req', '-x509', ...options, '-keyout', key, '-out', cert], { stdio: 'ignore' })
    const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, () => t.fail('was reached'))
    const port = await listen(t, server)
    t.equal(
      text(await fetcher(t)(`https://127.0.0.1:${port}/`)),
      `FAILED: The TLS connection to 127.0.0.1:${port} failed (DEPTH_ZERO_SELF_SIGNED_CERT).`,
    )
  },
)
