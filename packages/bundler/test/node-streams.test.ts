/** Digests, ciphers and compressors as streams of the bundle's own `node:stream`. */
import { Buffer } from 'node:buffer'
import crypto from 'node:crypto'
import stream from 'node:stream'
import t from 'tap'
import zlib from 'node:zlib'
import { bundleFunction } from '../src/index.ts'
import { Guest } from '../../runtime/test/support/guest.ts'

const SOURCE = `
  const crypto = require('node:crypto')
  const zlib = require('node:zlib')
  const { Buffer } = require('node:buffer')
  let stream
  try { stream = require('node:stream') } catch {}
  const AsyncFunction = (async () => {}).constructor
  exports.default = {
    async fetch(request) {
      if (stream === undefined) return new Response('none')
      return Response.json({ value: await new AsyncFunction('crypto', 'zlib', 'Buffer', 'stream', await request.text())(crypto, zlib, Buffer, stream) })
    },
  }`

const { code } = await bundleFunction(t.testdir({ 'index.cjs': SOURCE }))
const guest = new Guest().load(`(${code.trim().replace(/;$/, '')})(carpoolSupport_)`)
t.teardown(() => guest.isolate.dispose())

/** What the code gives; undefined if there are no streams. */
function evaluate(text: string): unknown {
  const { body } = guest.call({ bodyKind: 'text', body: text })
  return body === 'none' ? undefined : (JSON.parse(body) as { value: unknown }).value
}

const hasStreams = evaluate('return true') === true
const COLLECT = `const collect = async (readable) => { const pieces = []; for await (const piece of readable) pieces.push(piece); return Buffer.concat(pieces) }
  const data = Buffer.from('some text '.repeat(10000))
  const source = () => stream.Readable.from([data.subarray(0, 777), data.subarray(777)]);`
const DATA = Buffer.from('some text '.repeat(10_000))

t.test('streams', { skip: hasStreams ? false : 'the bundler has no node:stream' }, async (t) => {
  t.same(
    evaluate(`${COLLECT}
      const hash = crypto.createHash('sha256')
      const piped = (await collect(source().pipe(hash))).toString('hex')
      const hmac = crypto.createHmac('sha1', 'key')
      hmac.end(data)
      const sign = crypto.createSign('sha256')
      await new Promise((resolve, reject) => stream.pipeline(source(), sign, (error) => error ? reject(error) : resolve()))
      const { publicKey, privateKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' })
      return [piped, hash instanceof stream.Transform, (await collect(hmac)).toString('hex'), crypto.verify('sha256', data, publicKey, sign.sign(privateKey))]`),
    [
      crypto.createHash('sha256').update(DATA).digest('hex'),
      true,
      crypto.createHmac('sha1', 'key').update(DATA).digest('hex'),
      true,
    ],
  )
  t.same(
    evaluate(`${COLLECT}
      const [key, iv] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)]
      const sealed = await collect(source().pipe(crypto.createCipheriv('aes-128-cbc', key, iv)))
      const opened = await collect(stream.Readable.from([sealed]).pipe(crypto.createDecipheriv('aes-128-cbc', key, iv)))
      const broken = await collect(stream.Readable.from([sealed.subarray(1)]).pipe(crypto.createDecipheriv('aes-128-cbc', key, iv))).catch((error) => error.code)
      return [opened.equals(data), broken]`),
    [true, 'ERR_OSSL_WRONG_FINAL_BLOCK_LENGTH'],
  )
  t.same(
    evaluate(`${COLLECT}
      const results = []
      for (const [one, other] of [['Gzip', 'Gunzip'], ['Deflate', 'Inflate'], ['DeflateRaw', 'InflateRaw'], ['Gzip', 'Unzip'], ['BrotliCompress', 'BrotliDecompress']]) {
        const compressor = zlib['create' + one]()
        const bytes = await collect(source().pipe(compressor))
        const again = await collect(stream.Readable.from([bytes.subarray(0, 20), bytes.subarray(20)]).pipe(zlib['create' + other]()))
        results.push(again.equals(data), compressor instanceof zlib[one], compressor.bytesWritten === data.length)
      }
      const gzip = zlib.createGzip()
      let flushed = 0
      gzip.on('data', (piece) => (flushed += piece.length))
      gzip.write('a')
      await new Promise((resolve) => gzip.flush(resolve))
      const before = flushed
      gzip.end()
      const failure = await collect(stream.Readable.from(['nothing of gzip']).pipe(zlib.createGunzip())).catch((error) => [error.message, error.code, error.errno])
      return [results.every(Boolean), before > 10, failure]`),
    [true, true, ['incorrect header check', 'Z_DATA_ERROR', -3]],
  )
})

t.test('an endless text goes through a small memory', async (t) => {
  const small = new Guest(32).load(`(${code.trim().replace(/;$/, '')})(carpoolSupport_)`)
  t.teardown(() => small.isolate.dispose())
  const bomb = (compress: (bytes: Buffer) => Buffer): string => compress(Buffer.alloc(96 * 2 ** 20)).toString('base64')
  for (const [name, text] of [
    ['createGunzip', bomb(zlib.gzipSync)],
    [
      'createBrotliDecompress',
      bomb((bytes) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })),
    ],
  ] as const) {
    const { body } = small.call({
      bodyKind: 'text',
      body: `let size = 0, most = 0
        for await (const piece of stream.Readable.from([Buffer.from('${text}', 'base64')]).pipe(zlib.${name}())) { size += piece.length; most = Math.max(most, piece.length) }
        return [size, most]`,
    })
    t.same(JSON.parse(body), { value: [96 * 2 ** 20, 16_384] }, name)
  }
})

/** What a stream holds while nobody reads it, which is all read afterwards. */
const HELD = `
  const bytes = zlib.gzipSync(Buffer.alloc(1_000_000, 'text'))
  const gunzip = zlib.createGunzip({ chunkSize: 1000, highWaterMark: 10_000 })
  gunzip.end(bytes)
  const held = gunzip.readableLength
  let size = 0, most = 0
  for await (const piece of gunzip) { size += piece.length; most = Math.max(most, piece.length) }
  const calls = []
  const gzip = zlib.createGzip()
  gzip.resume()
  gzip.end('text')
  gzip.flush(() => calls.push('ends'))
  await new Promise((resolve) => gzip.on('end', resolve))
  await new Promise((resolve) => gzip.flush(resolve))
  gzip.flush()
  const { buffer, engine } = zlib.gzipSync('text', { info: true })
  const attempt = (run) => { try { run(); return 'none' } catch (error) { return [error.code, error.message] } }
  return [held <= 11_000, size, most, calls, zlib.gunzipSync(buffer).toString(), engine.bytesWritten, engine instanceof zlib.Gzip, attempt(() => zlib.createGzip({ chunkSize: 1 }))]`

t.test('back-pressure, flush() after the end, and options are as in Node', async (t) => {
  const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (...args: unknown[]) => Promise<unknown>
  t.same(evaluate(HELD), await new AsyncFunction('zlib', 'Buffer', HELD)(zlib, Buffer))
})

t.test('a digest that was not used yet is a stream to whoever looks', async (t) => {
  const looked = `
    const sum = (hash) => new Promise((resolve, reject) => stream.pipeline(source(), hash, (error) => error ? reject(error) : resolve(hash.digest ? hash.read().toString('hex') : 'none')))
    const one = await sum(crypto.createHash('sha1'))
    const other = crypto.createHash('sha1')
    await stream.promises.pipeline(source(), other)
    const cipher = crypto.createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16))
    const states = [other.readableEnded, other.writableFinished, other.destroyed, cipher.writable, cipher.readableFlowing, crypto.createHmac('sha1', 'a').writableNeedDrain, crypto.createSign('sha1').writableEnded, crypto.createSign('sha1').readable === undefined]
    cipher.destroy()
    return [one, other.read().toString('hex'), states, cipher.destroyed, crypto.Hash.prototype.writable === false, Object.keys(crypto.Hash.prototype).length, crypto.createHash('sha1').writable]`
  const digest = crypto.createHash('sha1').update(DATA).digest('hex')
  t.same(evaluate(COLLECT + looked), [digest, digest, [false, true, false, true, null, false, false, true], true, true, 0, true])
})

const PIPED = `
  const attempt = (run) => { try { return run() } catch (error) { return [error.code, error.message] } }
  const results = []
  for (const sum of [crypto.createHash('sha256'), crypto.createHmac('sha256', 'key')]) {
    await stream.promises.pipeline(stream.Readable.from(['ab', 'c']), sum)
    results.push(attempt(() => sum.update('more')), sum.digest('hex'), sum.read().toString('hex'), attempt(() => sum.digest('hex')), attempt(() => sum.update('more')))
  }
  return results`

t.test('who has piped something into a hash asks for its digest', async (t) => {
  const AsyncFunction = (async () => {}).constructor as new (...args: string[]) => (...args: unknown[]) => Promise<unknown>
  t.same(evaluate(PIPED), await new AsyncFunction('crypto', 'stream', PIPED)(crypto, stream))
})
