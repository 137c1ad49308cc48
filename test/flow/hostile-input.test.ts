/**
 * Forms, compressed texts and keys that are cut off, endless, or not what they say: each has its outcome, and the function
 * answers on.
 */
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { startServer } from '../support/server.ts'

const HOSTILE = `
  import { createPrivateKey, createPublicKey, createSecretKey } from 'node:crypto'
  import { gunzipSync, gzipSync } from 'node:zlib'

  const type = { 'content-type': 'multipart/form-data; boundary=x' }
  const PART = new TextEncoder().encode('--x\\r\\nContent-Disposition: form-data; name="a"\\r\\n\\r\\n' + 'y'.repeat(4_000) + '\\r\\n')
  const NOISE = crypto.getRandomValues(new Uint8Array(16_384))
  /** Gives the same bytes again and again, in turns of their own. */
  const endless = (bytes) => new ReadableStream({ pull: (controller) => controller.enqueue(bytes.slice()) })
  const gzipped = new Uint8Array(gzipSync(new Uint8Array(1_000_000)))
  const tried = async (run) => { try { return await run() } catch (error) { return error.name + (error.code ? ' ' + error.code : '') } }

  const cases = {
    '/form': async (request) => [...(await request.formData())].length,
    '/endless-form': () => new Response(endless(PART), { headers: type }).formData(),
    '/endless-file': () => new Response(endless(NOISE), { headers: type }).formData(),
    '/endless-gzip': async () => {
      // Stored blocks that go on and on.
      const stored = new Uint8Array([0, 255, 255, 0, 0, ...new Uint8Array(65_535)])
      const source = endless(stored)
      for await (const piece of source.pipeThrough(new DecompressionStream('deflate-raw'))) void piece
    },
    '/bomb': async () => (await new Response(new Blob([gzipped]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer()).byteLength,
    '/bombs': async () => {
      const kept = []
      for (;;) kept.push(gunzipSync(gzipped))
    },
    '/cut': () => Promise.all([0, 1, 9, 10, 500, gzipped.length - 1].map((at) => tried(async () => {
      await new Response(new Blob([gzipped.slice(0, at)]).stream().pipeThrough(new DecompressionStream('gzip'))).arrayBuffer()
      return 'whole'
    }))),
    '/keys': () => Promise.all([
      () => crypto.subtle.importKey('pkcs8', new Uint8Array(4_000_000), { name: 'RSA-PSS', hash: 'SHA-256' }, true, ['sign']),
      () => crypto.subtle.importKey('spki', new Uint8Array([0x30, 0x84, 255, 255, 255, 255, 0x30]), { name: 'ECDSA', namedCurve: 'P-256' }, true, ['verify']),
      () => crypto.subtle.importKey('raw', new Uint8Array(5_000_000), { name: 'ECDH', namedCurve: 'P-521' }, true, []),
      () => crypto.subtle.importKey('jwk', { kty: 'RSA', n: 'A'.repeat(3_000_000), e: 'AQAB' }, { name: 'RSA-OAEP', hash: 'SHA-1' }, true, ['encrypt']),
      () => createPrivateKey('-----BEGIN PRIVATE KEY-----\\n' + 'MIIB'.repeat(500_000) + '\\n-----END PRIVATE KEY-----'),
      () => createPublicKey('-----BEGIN PUBLIC KEY-----\\n' + '-----BEGIN PUBLIC KEY-----\\n'.repeat(50_000)),
      () => createPublicKey({ key: '', format: 'pem' }),
    ].map(tried)),
  }
  export default async (request) => Response.json((await cases[new URL(request.url).pathname]?.(request)) ?? 'fine')
`

const part = (name: string, value: string): string => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`

t.test('what is hostile has its outcome', async (t) => {
  const server = await startServer(t, ['--max-body-bytes', '1000000'])
  await server.deploy('hostile', {
    'index.js': HOSTILE,
    'carpool.config.json': '{"memoryMb": 32, "cpuMs": 1000, "timeoutMs": 20000}',
  })
  const post = (body: string): Promise<Response> =>
    server.get('/hostile/form', { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' }, body })
  const goesOn = async (t: Test): Promise<void> => {
    t.equal(await (await server.get('/hostile/')).text(), '"fine"', 'the next call works')
  }

  await t.test('forms of clients', async (t) => {
    t.equal(await (await post(`${part('a', '1')}--x--`)).text(), '1')
    for (const cut of [0, 1, 20, 45, 60]) {
      const response = await post(part('a', '1').slice(0, cut))
      t.match([response.status, response.headers.get('x-carpool-error')], [500, 'exception'], `${cut} bytes`)
      await response.arrayBuffer()
    }
    const large = await post(part('a', 'y'.repeat(1_100_000)))
    t.match([large.status, large.headers.get('x-carpool-error')], [500, 'exception'])
    await server.untilLogged('hostile', /1000000/)
    await goesOn(t)
  })

  await t.test('a form that never ends is cut off at the limit of bodies, and one that lies of its length is none', async (t) => {
    const { hostname, port } = new URL(server.url)
    const send = async (head: string, piece: string, pieces: number): Promise<string> => {
      const socket = connect(Number(port), hostname)
      let text = ''
      socket
        .setEncoding('utf8')
        .on('data', (more: string) => (text += more))
        .on('error', () => {})
      await new Promise((resolve) => socket.once('connect', resolve))
      socket.write(
        `POST /hostile/form HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=x\r\nconnection: close\r\n${head}\r\n\r\n`,
      )
      // It may be closed, or reset, in the middle of this.
      const closed = new Promise((resolve) => socket.once('close', resolve))
      for (let count = 0; count < pieces && socket.writable; count++) {
        if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed])
      }
      await closed
      return text
    }
    const chunk = `1000\r\n${'y'.repeat(0x1000)}\r\n`
    t.match(await send('transfer-encoding: chunked', chunk, 10_000), /^HTTP\/1\.1 500 [^]*exception/)
    const body = `${part('a', '1')}--x--`
    t.match(await send(`content-length: ${body.length - 10}`, body, 1), /^HTTP\/1\.1 (?:400|500) /, 'shorter than it is')
    await goesOn(t)
  })

  const ends: ReadonlyArray<readonly [path: string, code: RegExp]> = [
    // A RangeError where an array would not fit, unless the heap is full before that.
    ['/endless-form', /^(?:exception|memory-exceeded)$/],
    ['/endless-file', /^(?:exception|memory-exceeded)$/],
    ['/endless-gzip', /^cpu-exceeded$/],
    ['/bombs', /^(?:exception|memory-exceeded)$/],
  ]
  for (const [path, code] of ends) {
    await t.test(`${path} ends at a limit`, async (t) => {
      const response = await server.get(`/hostile${path}`)
      t.match(response.headers.get('x-carpool-error'), code, await response.text())
      await goesOn(t)
    })
  }

  await t.test('what is cut off is refused, and so are keys that are none', async (t) => {
    t.equal(await (await server.get('/hostile/bomb')).json(), 1_000_000)
    t.same(
      await (await server.get('/hostile/cut')).json(),
      Array.from({ length: 6 }, () => 'TypeError'),
    )
    const refusals = [
      ...Array.from({ length: 4 }, () => 'DataError'),
      ...Array.from({ length: 3 }, () => 'Error ERR_OSSL_UNSUPPORTED'),
    ]
    t.same(await (await server.get('/hostile/keys')).json(), refusals)
    await goesOn(t)
  })
})
