/** `node:zlib` and the Compression standard in a function, beside Node.js. */
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import t from 'tap'
import { IS_WHOLE, runs } from '../../../test/support/form.ts'
import { exchanged, hexBytes, inGuest, inNode, same } from './support/beside-node.ts'

const { evaluate, guest } = inGuest()
t.teardown(() => guest.isolate.dispose())

/** Texts that can be compressed, and some that cannot. */
const text = fc
  .tuple(hexBytes(0, 600), fc.nat({ max: 600 }))
  .map(([hex, times]) => (times < 300 ? hex : hex.slice(0, 60).repeat(times)))

const PAIRS = [
  ['gzip', 'gunzip'],
  ['deflate', 'inflate'],
  ['deflateRaw', 'inflateRaw'],
  ['brotliCompress', 'brotliDecompress'],
  ['gzip', 'unzip'],
  ['deflate', 'unzip'],
] as const

t.test('what one compresses the other reads, at once and later', () =>
  exchanged(
    evaluate,
    [
      `const data = Buffer.from(input.data, 'hex')
       const options = input.pair[0] === 'brotliCompress' ? { params: { 1: input.level } } : { level: input.level, memLevel: input.memLevel, windowBits: input.bits, strategy: input.strategy, chunkSize: 64 }
       const later = await new Promise((resolve, reject) => zlib[input.pair[0]](data, options, (error, result) => error ? reject(error) : resolve(result)))
       return [zlib[input.pair[0] + 'Sync'](data, options), later].map((one) => one.toString('base64'))`,
      `const [one, two] = input.made.map((one) => Buffer.from(one, 'base64'))
       const later = await new Promise((resolve, reject) => zlib[input.pair[1]](two, (error, result) => error ? reject(error) : resolve(result)))
       return zlib[input.pair[1] + 'Sync'](one).toString('hex') === input.data && later.toString('hex') === input.data`,
    ],
    fc.record({
      pair: fc.constantFrom(...PAIRS),
      data: text,
      level: fc.integer({ min: 0, max: 9 }),
      memLevel: fc.integer({ min: 1, max: 9 }),
      bits: fc.integer({ min: 9, max: 15 }),
      strategy: fc.integer({ min: 0, max: 4 }),
    }),
    runs(40),
  ),
)

t.test('a large text goes through brotli at its best, and comes back', () =>
  exchanged(
    evaluate,
    [
      `const data = Buffer.alloc(700_000, 'some text that says little, and says it again and again; ')
       for (let at = 0; at < data.length; at += 37) data[at] = (at * 7919) & 0xff
       return zlib.brotliCompressSync(data).toString('base64')`,
      `const data = zlib.brotliDecompressSync(Buffer.from(input.made, 'base64'))
       return data.length === 700_000 && data[37 * 100] === ((37 * 100 * 7919) & 0xff)`,
    ],
    fc.constant({}),
    1,
  ),
)

t.test('what brotli cannot make shorter comes back whole, at every quality', () =>
  exchanged(
    evaluate,
    [
      `const words = new Uint32Array(input.size / 4)
       for (let at = 0, state = input.seed; at < words.length; at++) words[at] = state = (Math.imul(state, 1664525) + 1013904223) >>> 0
       const data = Buffer.from(words.buffer).map((byte) => byte & input.mask)
       const made = zlib.brotliCompressSync(data, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: input.quality } })
       return { made: made.toString('base64'), sum: zlib.crc32(data) }`,
      `const data = zlib.brotliDecompressSync(Buffer.from(input.made.made, 'base64'))
       return data.length === input.size && zlib.crc32(data) === input.made.sum`,
    ],
    fc.record({
      quality: fc.oneof(fc.integer({ min: 0, max: 11 }), fc.integer({ min: 9, max: 11 })),
      size: fc.integer({ min: 0, max: IS_WHOLE ? 2 ** 18 : 2 ** 15 }).map((words) => words * 4),
      seed: fc.nat(),
      mask: fc.constantFrom(0xff, 0xff, 0x1f),
    }),
    runs(12),
  ),
)

t.test('deflate gives the very bytes of Node', () =>
  same(
    evaluate,
    `const data = Buffer.from(input.data, 'hex')
     return [zlib.deflateSync(data), zlib.gzipSync(data, { level: 9 }), zlib.deflateRawSync(data, { dictionary: Buffer.from('dictionary') })].map((one) => one.toString('hex')).concat(zlib.crc32(data), zlib.crc32(data, 7))`,
    fc.record({ data: text }),
    runs(40),
  ),
)

t.test('what is broken is refused by the same error', () =>
  same(
    evaluate,
    `const whole = zlib[input.pair[0] + 'Sync'](Buffer.from(input.data, 'hex'))
     const cut = Math.floor(whole.length * input.cut)
     const broken = Buffer.from(whole)
     broken[cut % whole.length] ^= 1 << input.bit
     const tried = (bytes) => { try { return zlib[input.pair[1] + 'Sync'](bytes).toString('hex') } catch (error) { return input.pair[1].startsWith('brotli') ? error.message : [error.message, error.code, error.errno] } }
     return [tried(whole.subarray(0, cut)), tried(broken), tried(Buffer.concat([whole, whole])), tried(Buffer.concat([whole, Buffer.from('rest')]))]`,
    fc.record({
      pair: fc.constantFrom(...PAIRS.filter(([name]) => name !== 'brotliCompress')),
      data: hexBytes(1, 200),
      cut: fc.double({ min: 0, max: 0.99, noNaN: true }),
      bit: fc.integer({ min: 0, max: 7 }),
    }),
    runs(150),
  ),
)

t.test('options are checked, and the result may be limited', async (t) => {
  for (const call of [
    `zlib.gzipSync('a', { level: 10 })`,
    `zlib.gzipSync('a', { windowBits: 30 })`,
    `zlib.gzipSync(1)`,
    `zlib.gunzipSync('a')`,
    `zlib.gunzipSync('')`,
    `zlib.inflateSync(zlib.deflateSync('a', { dictionary: Buffer.from('b') }))`,
    `zlib.inflateSync(zlib.deflateSync('a', { dictionary: Buffer.from('b') }), { dictionary: Buffer.from('c') })`,
    `zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(1e6)), { maxOutputLength: 1000 })`,
    `zlib.brotliDecompressSync(Buffer.from('nothing of brotli'))`,
  ]) {
    const code = `try { ${call}; return 'none' } catch (error) { return [error.name, ${call.includes('brotli') ? 'error.message' : 'error.code'}] }`
    t.same(await evaluate(code), await inNode(code), call)
  }
})

t.test('level and strategy change while a stream runs, and are checked', async (t) => {
  // What Node.js gives comes in other blocks.
  const changed = `
    const stream = zlib[input.make]({ level: input.level })
    const pieces = []
    stream.on('data', (piece) => pieces.push(piece))
    const part = (text) => new Promise((resolve) => stream.write(text, resolve))
    const turn = (level, strategy) => new Promise((resolve) => stream.params(level, strategy, resolve))
    const data = Buffer.from(input.data, 'hex')
    for (const [level, strategy] of input.turns) { await part(data); await turn(level, strategy) }
    const ended = new Promise((resolve) => stream.on('end', resolve))
    stream.end(data)
    await ended
    const all = Buffer.concat(pieces)
    return [zlib.unzipSync(all).equals(Buffer.concat(Array(input.turns.length + 1).fill(data))), all.length]`
  const level = fc.integer({ min: -1, max: 9 })
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        make: fc.constantFrom('createDeflate', 'createGzip'),
        level,
        turns: fc.array(fc.tuple(level, fc.integer({ min: 0, max: 4 })), { maxLength: 4 }),
        data: text,
      }),
      async (input) => t.match(await evaluate(changed, input), [true]),
    ),
    { numRuns: runs(40) },
  )
  const sizeAfter = async (turn: readonly number[]): Promise<number> => {
    const given = { make: 'createGzip', level: 9, turns: [turn], data: '07'.repeat(10_000) }
    return ((await evaluate(changed, given)) as [boolean, number])[1]
  }
  t.ok((await sizeAfter([0, 0])) > 10_000, 'what comes behind is stored')
  t.ok((await sizeAfter([9, 0])) < 200, 'it stays as it is')
  for (const args of ['10, 0', '-2, 0', '1, 5', '1, -1', '"1", 0', '1, {}', 'Infinity, 0', '1e9, 1e9']) {
    const code = `try { zlib.createGzip().params(${args}, () => {}); return 'none' } catch (error) { return [error.name, error.code, error.code === 'ERR_OUT_OF_RANGE' && error.message] }`
    t.same(await evaluate(code), await inNode(code), args)
  }
})

const STREAMED = `
  const through = async (Class, bytes) => {
    const stream = new Class(input.format)
    const writer = stream.writable.getWriter()
    void (async () => { for (let at = 0; at < bytes.length; at += input.step) await writer.write(bytes.subarray(at, at + input.step)); await writer.close() })().catch(() => {})
    const pieces = []
    const reader = stream.readable.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return Buffer.concat(pieces)
      pieces.push(Buffer.from(value))
    }
  };`

t.test('CompressionStream and DecompressionStream', () =>
  exchanged(
    evaluate,
    [
      `${STREAMED} return (await through(CompressionStream, Buffer.from(input.data, 'hex'))).toString('hex')`,
      `${STREAMED}
       const made = Buffer.from(input.made, 'hex')
       const refused = await through(DecompressionStream, made.subarray(0, made.length - 1)).catch((error) => error.name)
       const more = await through(DecompressionStream, Buffer.concat([made, Buffer.from('more')])).catch((error) => error.name)
       return (await through(DecompressionStream, made)).toString('hex') === input.data && refused === 'TypeError' && more === 'TypeError'`,
    ],
    fc.record({
      format: fc.constantFrom('gzip', 'deflate', 'deflate-raw'),
      data: text,
      step: fc.integer({ min: 1, max: 5000 }),
    }),
    runs(20),
  ),
)

t.test('DecompressionStream makes as much as is read of a chunk', async (t) => {
  const small = inGuest(24)
  t.teardown(() => small.guest.isolate.isDisposed || small.guest.isolate.dispose())
  const begin = `
    const stream = new DecompressionStream(input.format)
    const writer = stream.writable.getWriter()
    const closed = (async () => { await writer.write(Buffer.from(input.made, 'base64')); await writer.close() })()
    closed.catch(() => {})
    const reader = stream.readable.getReader();`
  const all = `${begin}
    let length = 0
    for (let next = await reader.read(); !next.done; next = await reader.read()) length += next.value.length
    await closed
    await reader.closed
    return length`
  const bytes = (IS_WHOLE ? 64 : 32) * 1024 * 1024
  for (const [format, made] of [
    ['gzip', gzipSync(Buffer.alloc(bytes))],
    ['brotli', brotliCompressSync(Buffer.alloc(bytes), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
  ] as const) {
    t.equal(await small.evaluate(all, { format, made: made.toString('base64') }), bytes, format)
  }
  const made = gzipSync(Buffer.alloc(1_000_000)).toString('base64')
  const canceled = `${begin}
    await reader.read()
    await reader.cancel(new Error('enough'))
    return [await writer.closed.catch((error) => error.message), (await reader.read()).done]`
  t.same(await small.evaluate(canceled, { format: 'gzip', made }), ['enough', true])
  const broken = `${begin}
    const seen = []
    for (;;) {
      const read = await reader.read().catch((error) => error.name)
      seen.push(read)
      if (typeof read === 'string') break
    }
    return [seen.length > 2, seen.at(-1), await closed.catch((error) => error.name), await reader.closed.catch((error) => error.name)]`
  const changed = Buffer.from(made, 'base64')
  changed[changed.length - 8]! ^= 1
  t.same(await small.evaluate(broken, { format: 'gzip', made: changed.toString('base64') }), [
    true,
    'TypeError',
    'TypeError',
    'TypeError',
  ])
})

t.test('a bomb stops at the memory limit, and the function may go on', async (t) => {
  const small = inGuest(24)
  t.teardown(() => small.guest.isolate.isDisposed || small.guest.isolate.dispose())
  const bomb = `let bomb = zlib.gzipSync(Buffer.alloc(4e6)); bomb = Buffer.concat(Array.from({ length: 50 }, () => bomb))`
  const code = `${bomb}; try { return zlib.gunzipSync(bomb).length } catch (error) { return error.name }`
  t.equal(await small.evaluate(code), 'RangeError')
  t.equal(await small.evaluate(`return zlib.gunzipSync(zlib.gzipSync('after')).toString()`), 'after')
})
