/** Digests, ciphers and compressors as streams of the bundle's own `node:stream`. */
import crypto from 'node:crypto'
import t from 'tap'
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
