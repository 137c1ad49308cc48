import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { fetcher, listen, text, upstream } from './fixtures/upstream.ts'

t.test('a request body is limited', async (t) => {
  const origin = await upstream(t, (request, response) => request.pipe(response))
  const fetch = fetcher({ limits: { maxRequestBytes: 1000 } })
  const send = (bytes: number) => fetch(origin, { method: 'POST', body: Buffer.alloc(bytes, 'x') })
  t.equal(text(await send(1000)).length, 1000)
  t.match(await send(1001), { end: 'refused', message: 'The request body has 1001 bytes; the limit is 1000.', bytesOut: 0 })
})

t.test('an aborted fetch ends at once, and its connection with it', async (t) => {
  const arrived = Promise.withResolvers<import('node:net').Socket>()
  const origin = await upstream(t, (request, response) => {
    response.write('begun')
    arrived.resolve(request.socket)
  })
  const fetch = fetcher()
  const aborting = new AbortController()
  const result = fetch(origin, {}, aborting.signal)
  const socket = await arrived.promise
  const closed = new Promise((resolve) => socket.on('close', resolve))
  aborting.abort()
  t.match(await result, { ok: false, end: 'aborted', message: 'The fetch was aborted.' })
  await closed
  t.match(await fetch(origin, {}, aborting.signal), { ok: false, end: 'aborted', message: 'The fetch was aborted.' })
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
  const fetch = fetcher()
  const expected: Record<string, RegExp> = {
    '/nothing': /closed the connection\.$/,
    '/garbage': /gave no valid HTTP response\.$/,
    '/short': /(?:closed the connection|does not have the length that it announced)\.$/,
    '/headers': /The headers of the response of .* are larger than the limit of 32768 bytes\.$/,
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
      text(await fetcher()(`https://127.0.0.1:${port}/`)),
      `FAILED: The TLS connection to 127.0.0.1:${port} failed (DEPTH_ZERO_SELF_SIGNED_CERT).`,
    )
  },
)
