/** Group C3 of the list of attacks, row M19: memory that libraries of the runtime, and native functions, keep for a function. */
import type { IsolationCase } from '../harness/isolation-case.ts'
import { FRAMES, moduleOf } from './libraries-kit.ts'
import { mostMb } from './memory-at-once.ts'

const LIMITS = { memoryMb: 32, cpuMs: 10_000, wallMs: 20_000 }
const MAX_GROWTH_MB = mostMb(LIMITS.memoryMb)

/** Either ends with its isolate, or is refused with an error that the function sees: it depends on which comes first. */
function hoards(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  return {
    id,
    group: 'memory',
    title,
    verdict: 'K',
    billed: 'full',
    limits: LIMITS,
    expect: { status: 502, code: 'memory-exceeded' },
    handler,
    check: checkPeak,
    ...more,
  }
}

const checkPeak: NonNullable<IsolationCase['check']> = ({ t }, { growthMb = 0 }) => {
  t.ok(growthMb < MAX_GROWTH_MB, `the host took ${Math.round(growthMb)} MiB more at most`)
}

const shown = (handler: string): string =>
  `try { ${handler} } catch (error) { return new Response(error.name) } return new Response('given')`

/** What there is no room for outside of the heap: an error that the function sees. */
function denied(id: string, title: string, handler: string, more: Partial<IsolationCase> = {}): IsolationCase {
  // Which comes first depends on how much of it is in the heap.
  const expect = { code: /^(?:|memory-exceeded)$/, body: /^RangeError$|"memory-exceeded"/ }
  // So close to its limit, the isolate may be given no more calls.
  return hoards(id, title, shown(handler), { verdict: 'R', expect, again: 'any', ...more })
}

function deniedInModules(
  id: string,
  title: string,
  scope: string,
  handler: string,
  more: Partial<IsolationCase> = {},
): IsolationCase {
  return denied(id, title, '', { files: moduleOf(scope, shown(handler)), ...more })
}

const CRYPTO = `import crypto from 'node:crypto'`
const ZLIB = `import zlib from 'node:zlib'`
const PIECE = `${ZLIB}\nconst piece = zlib.gzipSync(Buffer.alloc(5e6))`

const NATIVE: readonly IsolationCase[] = [
  deniedInModules('M19a', 'digests without end', CRYPTO, `const kept = []; for (;;) kept.push(crypto.createHash('sha512'))`),
  deniedInModules(
    'M19b',
    'keys without end',
    CRYPTO,
    `const kept = []; for (;;) kept.push(crypto.generateKeyPairSync('ed25519'))`,
  ),
  deniedInModules(
    'M19c',
    'ciphers without end',
    CRYPTO,
    `const kept = []; for (;;) kept.push(crypto.createCipheriv('aes-128-cbc', Buffer.alloc(16), Buffer.alloc(16)))`,
  ),
  deniedInModules(
    'M19d',
    'scrypt with a gigabyte',
    CRYPTO,
    `crypto.scryptSync('a', 'b', 64, { N: 2 ** 20, r: 8, p: 1, maxmem: 2 ** 31 })`,
  ),
  deniedInModules('M19e', 'compressors without end', ZLIB, `const kept = []; for (;;) kept.push(zlib.createGzip())`),
  deniedInModules('M19f', 'a bomb of a gigabyte', PIECE, `zlib.gunzipSync(Buffer.concat(Array(200).fill(piece)))`),
  deniedInModules(
    'M19g',
    'bombs of brotli',
    `${ZLIB}\nconst piece = zlib.brotliCompressSync(Buffer.alloc(5e6), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } })`,
    `const kept = []; for (;;) kept.push(zlib.brotliDecompressSync(piece))`,
  ),
  deniedInModules(
    'M19t',
    'compressors of brotli without end',
    `${ZLIB}
    import crypto from 'node:crypto'
    const bytes = crypto.randomBytes(6e5), fast = { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } }`,
    `const kept = []
    for (;;) {
      const stream = zlib.createBrotliCompress(fast)
      kept.push(stream.resume())
      await new Promise((done, failed) => {
        stream.on('error', failed)
        stream.write(bytes, (error) => (error ? failed(error) : done()))
      })
    }`,
  ),
  denied(
    'M19h',
    'bombs of a DecompressionStream',
    `const zip = async (body, stream) => new Uint8Array(await new Response(new Response(body).body.pipeThrough(stream)).arrayBuffer())
    const piece = await zip(new Uint8Array(2e6), new CompressionStream('gzip')); const kept = []
    for (;;) kept.push(await zip(piece, new DecompressionStream('gzip')))`,
  ),
]

const WEB: readonly IsolationCase[] = [
  denied('M19i', 'blobs without end', 'const kept = []; for (;;) kept.push(new Blob([new Uint8Array(1e5)]))'),
  denied('M19j', 'URLs of blobs without end', 'for (;;) URL.createObjectURL(new Blob([new Uint8Array(1e5)]))'),
  denied(
    'M19k',
    'messages of buffers that nobody takes',
    'const { port1 } = new MessageChannel(); for (;;) port1.postMessage(new Uint8Array(1e5))',
  ),
  hoards('M19l', 'messages that nobody takes', 'const { port1 } = new MessageChannel(); for (;;) port1.postMessage({ a: 1 })'),
  hoards('M19m', 'fields of a form without end', 'const form = new FormData(); for (let i = 0; ; i++) form.append("a" + i, "b")'),
  hoards(
    'M19n',
    'patterns for URLs without end',
    'const kept = []; for (let i = 0; ; i++) kept.push(new URLPattern({ pathname: "/a" + i }))',
  ),
  hoards('M19o', 'marks of time without end', 'for (let i = 0; ; i++) performance.mark("a" + i)'),
  hoards('M19p', 'weak references without end', 'const kept = []; for (;;) kept.push(new WeakRef({}))'),
  hoards('M19q', 'rejected promises that nobody awaits, without end', 'for (;;) { Promise.reject({}); await null }'),
]

const SERVERS: readonly IsolationCase[] = [
  hoards('M19r', 'a server of node:http that writes without a pause', '', {
    files: `import { createServer } from 'node:http'
      let callsSeen = 0
      export default createServer((req, res) => {
        if (req.url.endsWith('/again')) return res.end('seen ' + callsSeen)
        callsSeen++
        for (;;) res.write(Buffer.alloc(65536))
      })`,
    expect: { code: /^(?:memory-exceeded|exception)$/ },
    again: 'any',
    mayShow: FRAMES,
  }),
  hoards('M19s', 'what is written to a stream that is never read', '', {
    files: moduleOf(
      `import { PassThrough } from 'node:stream'`,
      `const stream = new PassThrough(); for (;;) stream.write('x'.repeat(1000) + Math.random())`,
    ),
    expect: { code: /^(?:memory-exceeded|exception)$/ },
    again: 'any',
    mayShow: FRAMES,
  }),
]

export const LIBRARY_MEMORY_CASES: readonly IsolationCase[] = [...NATIVE, ...WEB, ...SERVERS]
