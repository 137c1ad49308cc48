import { buffer } from 'node:stream/consumers'
import {
  brotliCompressSync,
  constants,
  createZstdCompress,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import t from 'tap'
import { fetcher, header, text, upstream } from './fixtures/upstream.ts'

const CODERS = { gzip: gzipSync, 'x-gzip': gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }
const tooLarge = /^FAILED: The response of 127\.0\.0\.1:\d+ is larger than the limit of 1000 bytes\.$/
const tooLargeDecompressed = /^FAILED: The response of 127\.0\.0\.1:\d+, decompressed, is larger than the limit of 1000 bytes\.$/

/** Codes a body as the comma-separated names say; what is no name leaves it as it is. */
function encode(body: Buffer, codings: string): Buffer {
  return codings.split(', ').reduce<Buffer>((plain, coding) => {
    if (coding === 'raw') return deflateRawSync(plain)
    return CODERS[coding as keyof typeof CODERS]?.(plain) ?? plain
  }, body)
}

t.test('a compressed response comes decompressed, and its headers do not claim otherwise', async (t) => {
  const origin = await upstream(t, (request, response) => {
    const codings = decodeURIComponent(request.url?.slice(1) ?? '')
    response
      .writeHead(200, { 'content-encoding': codings.replace('raw', 'deflate') })
      .end(request.method === 'HEAD' ? undefined : encode(Buffer.from('plain text'), codings))
  })
  const fetch = fetcher()
  for (const codings of [...Object.keys(CODERS), 'raw', 'gzip, br', 'identity', 'deflate, gzip, zstd']) {
    const result = await fetch(`${origin}/${codings}`)
    t.equal(text(result), 'plain text', codings)
    if (codings === 'identity' || !result.ok) continue
    t.same([header(result.headers, 'content-encoding'), header(result.headers, 'content-length')], [[], []])
    t.equal(result.bytesIn, encode(Buffer.from('plain text'), codings).length, 'counted as it came')
  }
  const unknown = await fetch(`${origin}/sdch`)
  t.equal(text(unknown), 'plain text')
  t.same(unknown.ok && header(unknown.headers, 'content-encoding'), ['sdch'])
  const head = await fetch(`${origin}/gzip`, { method: 'HEAD' })
  t.match(head, { ok: true, status: 200 })
  t.same(head.ok && header(head.headers, 'content-encoding'), ['gzip'], 'what a HEAD response says of the body stays')
})

t.test('a response is limited as it is sent and as it is decompressed', async (t) => {
  const origin = await upstream(t, (request, response) => {
    const [, how = '', size] = request.url?.split('/') ?? []
    const body = Buffer.alloc(Number(size), 'x')
    if (how === 'announced') response.writeHead(200, { 'content-length': body.length }).end(body)
    else if (how === 'chunked') {
      response.write(body.subarray(0, 10))
      response.end(body.subarray(10))
    } else response.writeHead(200, { 'content-encoding': how }).end(encode(body, how))
  })
  const fetch = fetcher({ limits: { maxResponseBytes: 1000 } })
  for (const how of ['announced', 'chunked']) {
    t.equal(text(await fetch(`${origin}/${how}/1000`)).length, 1000, how)
    t.match(text(await fetch(`${origin}/${how}/1001`)), tooLarge, how)
  }
  for (const how of Object.keys(CODERS)) {
    t.equal(text(await fetch(`${origin}/${how}/1000`)).length, 1000, how)
    t.match(text(await fetch(`${origin}/${how}/1001`)), tooLargeDecompressed, how)
    t.match(text(await fetch(`${origin}/${how}/500000`)), tooLargeDecompressed, `bomb of ${how}`)
  }
})

t.test('a body that is not what it is said to be fails', async (t) => {
  const plain = Buffer.alloc(5_000, 'x')
  const bodies: Record<string, Buffer> = { 'not': Buffer.from('not compressed at all') }
  for (const [coding, encodeBody] of Object.entries(CODERS)) bodies[`cut ${coding}`] = encodeBody(plain).subarray(0, -5)
  // A window of 128 MiB, of which the stream does not know yet that it is not needed.
  const wide = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: 27 } })
  wide.write(plain)
  wide.end(plain)
  bodies['wide zstd'] = await buffer(wide)
  const origin = await upstream(t, (request, response) => {
    const name = decodeURIComponent(request.url?.slice(1) ?? '')
    response.writeHead(200, { 'content-encoding': name.split(' ')[1] ?? 'gzip' }).end(bodies[name])
  })
  const fetch = fetcher()
  for (const name of Object.keys(bodies)) t.match(text(await fetch(`${origin}/${name}`)), /cannot be decompressed\.$/, name)
})

t.test('a bomb of any depth ends with the first step that is too large, and what came of it is counted', async (t) => {
  const limitBytes = 100_000
  const zeros = Buffer.alloc(5_000_000)
  const bombs: Record<string, Buffer> = {
    'gzip': gzipSync(zeros),
    'br': brotliCompressSync(zeros),
    'zstd': zstdCompressSync(zeros),
    'gzip, gzip': gzipSync(gzipSync(zeros)),
    'br, gzip, zstd': encode(zeros, 'br, gzip, zstd'),
    // Large only between its two ends: a flood of empty members, compressed once more.
    'gzip, br': brotliCompressSync(Buffer.alloc(4_000_000, gzipSync(''))),
  }
  const origin = await upstream(t, (request, response) => {
    const codings = decodeURIComponent(request.url?.slice(1) ?? '')
    response.writeHead(200, { 'content-encoding': codings }).end(bombs[codings])
  })
  const fetch = fetcher({ limits: { maxResponseBytes: limitBytes } })
  for (const [codings, bomb] of Object.entries(bombs)) {
    t.ok(bomb.length < limitBytes, `${codings}: ${bomb.length} bytes`)
    const result = await fetch(`${origin}/${encodeURIComponent(codings)}`)
    t.match(result, { ok: false, end: 'failed', message: /decompressed, is larger than the limit of 100000 bytes/ }, codings)
    t.ok(result.bytesIn > 0 && result.bytesIn <= bomb.length, `${result.bytesIn} of ${bomb.length} bytes`)
  }
})

t.test('a thousand layers are refused by their names', async (t) => {
  const origin = await upstream(t, (request, response) => {
    const layers = Number(request.url?.slice(1))
    const codings = Array.from({ length: layers }, () => 'gzip')
    const body = codings.reduce<Buffer>((plain) => gzipSync(plain), Buffer.from('deep'))
    response.writeHead(200, { 'content-encoding': codings.join(',') }).end(body)
  })
  const fetch = fetcher()
  t.equal(text(await fetch(`${origin}/5`)), 'deep')
  const refused = /is compressed too many times over; the limit is 5\.$/
  t.match(await fetch(`${origin}/6`), { ok: false, message: refused, bytesIn: 0 })
  t.match(await fetch(`${origin}/1000`), { ok: false, message: refused, bytesIn: 0 })
})
